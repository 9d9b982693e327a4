<?php
// Structures, each with the memory that PHP frees when a copy of it is dropped.
class Pair { public $one; public $other = 1; }
class Magic
{
    private $values = [];
    function __get($name) { return $this->values[$name] ?? null; }
    function __set($name, $value) { $this->values[$name] = $value; }
}
class Structures
{
    public $list, $map, $objects, $closures, $generators, $strings, $storage, $array_objects, $linked, $heap, $queue, $fixed,
        $nested, $magic, $references, $iterators, $exceptions, $dynamic;
}
function numbers($from) { $text = str_repeat('n', 100 + $from); yield $from => $text; yield 2; }
function many($count, $make) { $all = []; for ($i = 0; $i < $count; $i++) $all[] = $make($i); return $all; }
function filled($container, $add) { for ($i = 0; $i < 300; $i++) $add($container, $i); return $container; }
function made($what)
{
    switch ($what) {
        case 'list': return range(1, 5000);
        case 'map': $map = []; foreach (range(1, 1000) as $i) $map["key $i"] = $i; return $map;
        case 'objects': return many(500, function ($i) { $pair = new Pair; $pair->one = [$i, "text $i"]; return $pair; });
        case 'closures': return many(500, function ($i) { return function () use ($i) { return $i; }; });
        case 'generators': return many(100, function ($i) { $all = numbers($i); $all->current(); return $all; });
        case 'strings': return many(1000, function ($i) { return str_repeat('s', $i + 1); });
        case 'storage':
            $storage = new SplObjectStorage;
            for ($i = 0; $i < 300; $i++) $storage->attach(new Pair, "data $i");
            return $storage;
        case 'array_objects': return many(100, function ($i) { return new ArrayObject([$i, "text $i"]); });
        case 'linked': return filled(new SplDoublyLinkedList, function ($list, $i) { $list->push("element $i"); });
        case 'heap': return filled(new SplMinHeap, function ($heap, $i) { $heap->insert("element $i"); });
        case 'queue': return filled(new SplPriorityQueue, function ($queue, $i) { $queue->insert("element $i", $i); });
        case 'fixed': return SplFixedArray::fromArray(many(300, function ($i) { return "element $i"; }));
        case 'nested': $list = []; foreach (range(1, 300) as $i) $list = [$list, "text $i"]; return $list;
        case 'magic': return many(100, function ($i) { $magic = new Magic; $magic->x = "text $i"; return $magic; });
        case 'references': $all = []; foreach (range(1, 300) as $i) { $text = "text $i"; $all[] = &$text; $all[] = &$text; unset($text); } return $all;
        case 'iterators': return many(100, function ($i) { return new ArrayIterator(['key' => "text $i"]); });
        case 'exceptions': return many(50, function ($i) { return new RuntimeException("message $i"); });
        case 'dynamic': return many(100, function ($i) { $object = new stdClass; $object->one = "text $i"; $object->other = [$i]; return $object; });
    }
}
gc_disable();
$structures = new Structures;
$freed = [];
foreach (array_keys(get_object_vars($structures)) as $name) {
    // Once before, so that what PHP keeps for the next time is there.
    made($name);
    $copy = made($name);
    $before = memory_get_usage();
    $copy = null;
    $freed[$name] = $before - memory_get_usage();
}
foreach ($freed as $name => $bytes) $structures->$name = made($name);
fwrite(STDERR, 'READY ' . json_encode(['usage' => memory_get_usage(), 'freed' => $freed]) . "\n");
sleep((int) (getenv('WAIT') ?: 20));
