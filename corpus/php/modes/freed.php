<?php
// Builds structures of many kinds, says how much memory PHP frees with each, and builds them again to be looked at, each in a
// global variable of its own, whose name is freed with it. What is made once, such as tables of time zones, is made before anything is measured.

final class Point
{
    public ?Point $next = null;

    public function __construct(public string $name, public array $tags = [])
    {
    }
}

final class Area
{
    private array $points = [];

    public function __construct(private string $name)
    {
    }

    public function describe(string $prefix): Closure
    {
        $calls = 0;
        return function () use ($prefix, &$calls) {
            static $seen = [];
            $seen[] = $calls++;
            return $prefix . $this->name;
        };
    }
}

const LETTERS = ['a', 'b', 'c'];

function text(string $what, int $number): string
{
    return str_repeat("$what $number;", $number % 7 + 1);
}

function steps(string $what, int $count): Generator
{
    $made = [];
    for ($number = 0; $number < $count; $number++) {
        $made[] = text($what, $number);
        yield text('key', $number) => yield from more($what, $number);
    }
}

function more(string $what, int $number): Generator
{
    $own = text("inner $what", $number);
    yield $own;
    return $own;
}

function fill(object $into, callable $add, int $count): object
{
    for ($number = 0; $number < $count; $number++) {
        $add($into, $number);
    }
    return $into;
}

/** Clears what the allocator gives out next: the end of a block that is larger than what is in it may look like a reference. */
function clear(): void
{
    for ($size = 32; $size <= 512; $size += 8) {
        for ($number = 0; $number < 60; $number++) {
            $zeros[] = str_repeat("\0", $size - 25);
        }
    }
}

$builders = [
    'packed_list' => fn () => array_map(fn ($number) => text('element', $number), range(0, 99)),
    'map_of_strings' => function () {
        for ($number = 0; $number < 100; $number++) {
            $map[text('key', $number)] = text('value', $number);
        }
        return $map;
    },
    'nested_arrays' => function () {
        for ($row = 0; $row < 20; $row++) {
            for ($column = 0; $column < 20; $column++) {
                $rows["row $row"][$column] = ['column' => $column, 'text' => text('cell', $column)];
            }
        }
        return $rows;
    },
    'references' => function () {
        $array = array_map(fn ($number) => text('target', $number), range(0, 49));
        foreach ($array as $key => &$value) {
            $array["again $key"] = &$value;
            if ($key === 49) {
                break;
            }
        }
        return $array;
    },
    'declared_properties' => fn () => array_map(fn ($number) => new Point(text('point', $number), [$number, text('tag', $number)]), range(0, 49)),
    'dynamic_properties' => fn () => array_map(fn ($number) => (object) ["own $number" => text('own', $number), 'number' => $number], range(0, 49)),
    'closures' => function () {
        for ($number = 0; $number < 30; $number++) {
            $closures[] = $closure = (new Area(text('area', $number)))->describe(text('prefix', $number));
            $closure();
        }
        return $closures;
    },
    'generators' => function () {
        for ($number = 0; $number < 20; $number++) {
            $generators[] = $generator = steps(text('step', $number), 5);
            $generator->next();
            $generator->next();
        }
        return $generators;
    },
    'object_storage' => fn () => fill(new SplObjectStorage(), fn ($into, $number) => $into[new Point(text('stored', $number))] = text('data', $number), 50),
    'array_object' => fn () => fill(new ArrayObject(), fn ($into, $number) => $into[text('key', $number)] = text('element', $number), 50),
    'fixed_array' => fn () => fill(new SplFixedArray(60), fn ($into, $number) => $into[$number] = text('element', $number), 50),
    'doubly_linked_list' => fn () => fill(new SplDoublyLinkedList(), fn ($into, $number) => $into->push(text('element', $number)), 50),
    'priority_queue' => fn () => fill(new SplPriorityQueue(), fn ($into, $number) => $into->insert(new Point(text('queued', $number)), $number % 9), 50),
    'min_heap' => fn () => fill(new SplMinHeap(), fn ($into, $number) => $into->insert(text('heaped', $number)), 50),
    'linked_objects' => function () {
        for ($number = 0, $first = null; $number < 100; $number++) {
            $point = new Point(text('link', $number));
            $point->next = $first;
            $first = $point;
        }
        return $first;
    },
    'literals' => fn () => [['one', 'two', ['three' => 3.5]], 'a literal that is not freed with the array that it is in', LETTERS],
    'large_strings' => fn () => [str_repeat('l', 100_000), str_repeat('h', 3_000_000), str_repeat('p', 5000)],
    'dates' => fn () => array_map(fn ($number) => [new DateTime("2024-02-03 04:05:06"), new DateTimeImmutable("2024-02-03 04:05:06 +02:00"), new DateTimeZone('Europe/Paris'), new DateInterval('P1DT2H'), new DateTime('@1700000000')], range(0, 9)),
    'periods' => fn () => [new DatePeriod(new DateTime('2024-01-01'), new DateInterval('P1D'), 5)],
    'weak_map' => function () {
        $map = new WeakMap();
        for ($number = 0; $number < 50; $number++) {
            $keys[] = $key = new Point(text('key', $number));
            $map[$key] = text('note', $number);
        }
        return [$map, $keys];
    },
    'weak_references' => function () {
        for ($number = 0; $number < 30; $number++) {
            $made[] = $point = new Point(text('referent', $number));
            $made[] = WeakReference::create($point);
        }
        return $made;
    },
    'memory_streams' => function () {
        for ($number = 0; $number < 20; $number++) {
            $streams[] = $stream = fopen('php://memory', 'w+');
            fwrite($stream, str_repeat("line $number\n", 200));
        }
        return $streams;
    },
    'files' => function () {
        for ($number = 0; $number < 20; $number++) {
            $files[] = $file = fopen(__FILE__, 'r');
            fgets($file);
        }
        return $files;
    },
    'bound_methods' => fn () => array_map(fn ($number) => (new Area(text('area', $number)))->describe(...), range(0, 29)),
    'iterators' => fn () => array_map(fn ($number) => new LimitIterator(new ArrayIterator([text('row', $number), $number]), 0, 1), range(0, 19)),
    'exceptions' => fn () => array_map(fn ($number) => new RuntimeException(text('message', $number), $number), range(0, 9)),
];

// Some of what a time zone allocates is never written to. Its remnant leads to a free block, so all that are free are taken.
$zones = array_map(fn ($number) => new DateTime('now', new DateTimeZone($number % 2 ? 'UTC' : 'Europe/Paris')), range(0, 599));

$freed = [];
for ($round = 0; $round < 2; $round++) {
    foreach ($builders as $name => $build) {
        clear();
        $GLOBALS["the_$name"] = $build();
        $before = memory_get_usage();
        unset($GLOBALS["the_$name"]);
        $freed[$name] = $before - memory_get_usage();
    }
}
foreach ($builders as $name => $build) {
    clear();
    $GLOBALS["the_$name"] = $build();
}
unset($build, $name, $before, $round);
fwrite(STDERR, 'READY ' . json_encode(['freed' => $freed]) . "\n");
sleep((int) (getenv('WAIT') ?: 20));
