<?php
// What came with PHP 7.4 and 8.0.

require __DIR__ . '/point.php';

#[Attribute]
class Note
{
    public function __construct(public string $text = '')
    {
        point('constructor with promoted properties');
    }
}

#[Note(text: 'x')]
class Noted
{
    public ?Noted $next = null;

    public function name(): static
    {
        point('method behind ?->');
        return $this;
    }
}

$f = fn ($x) => point('arrow function') ?? $x;
$f(1);
array_map(fn ($x) => point('arrow function called by a function of PHP'), [1]);
array_map(fn ($x) => array_map(fn ($y) => point('arrow function in an arrow function'), [$x]), [1]);

(new ReflectionClass(Noted::class))->getAttributes()[0]->newInstance();
new Note(text: 'by name');
(new Noted())?->name();

function matched($x)
{
    return match (true) {
        $x > 5 => point('match'),
        default => 1,
    };
}
matched(6);

function throwing($x)
{
    return $x ?? throw new LogicException('x');
}
try {
    throwing(null);
} catch (LogicException) {
    point('caught from a throw expression');
}

class Text implements Stringable
{
    public function __toString(): string
    {
        point('__toString called by a function of PHP');
        return 'x';
    }
}
strlen(new Text());
str_repeat(new Text(), 2);
implode(',', [new Text()]);

function named(int $a = 1, int ...$rest)
{
    point('named arguments');
}
named(a: 2, z: 3);
$callable = Closure::fromCallable('named');
$callable(1);
$callable = Closure::fromCallable([new Noted(), 'name']);
$callable();
$map = new WeakMap();
$map[$callable] = 1;
