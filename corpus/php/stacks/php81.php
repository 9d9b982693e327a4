<?php
// Fibers, enums and first-class callables: PHP 8.1.

namespace App;

require __DIR__ . '/point.php';

enum Suit: string
{
    case Hearts = 'h';

    const Wild = self::Hearts;

    public function label(): string
    {
        \point('method of an enum');
        return 'x';
    }

    public static function all(): array
    {
        return array_map(fn (self $suit) => $suit->label(), self::cases());
    }
}

Suit::all();
Suit::from('h')->label();

class Service
{
    public function __construct(private Suit $suit = Suit::Hearts)
    {
    }

    public function run(...$rest)
    {
        \point('first-class callable of a method');
    }

    public static function stand()
    {
        \point('first-class callable of a static method');
    }

    public function __call($name, $arguments)
    {
        \point("first-class callable of $name");
    }
}

$service = new Service();
$f = $service->run(...);
$f();
$f = Service::stand(...);
$f();
$f = $service->nothing(...);
$f(1);
$f = array_map(...);
$f(fn () => \point('first-class callable of a function of PHP'), [1]);

function work($what)
{
    \point("$what, started");
    $got = \Fiber::suspend(1);
    \point("$what, resumed");
    return 2;
}

$fiber = new \Fiber(function ($what) {
    work($what);
    return 3;
});
$fiber->start('fiber');
$fiber->resume(1);

function resume_it(\Fiber $fiber)
{
    while (!$fiber->isTerminated()) {
        $fiber->isStarted() ? $fiber->resume() : $fiber->start('fiber in a fiber');
    }
}
$fiber = new \Fiber(function () {
    resume_it(new \Fiber(\Closure::fromCallable('App\work')));
    \point('fiber behind a fiber');
});
resume_it($fiber);

function numbers()
{
    \point('generator in a fiber');
    $x = \Fiber::suspend(1);
    \point('generator in a fiber, resumed');
    yield 1;
}
function delegates()
{
    yield from numbers();
}
$fiber = new \Fiber(function () {
    foreach (delegates() as $value) {
    }
});
$fiber->start();
$fiber->resume();

function fibers()
{
    $fiber = new \Fiber(function () {
        \point('fiber in a generator');
        \Fiber::suspend();
        \point('fiber in a generator, resumed');
    });
    $fiber->start();
    yield 1;
    $fiber->resume();
}
foreach (fibers() as $value) {
}

$fiber = new \Fiber(function () {
    \Fiber::suspend();
});
$fiber->start();
try {
    $thrower = new \Fiber(function () use ($fiber) {
        try {
            \Fiber::suspend();
        } catch (\Exception $exception) {
            \point('exception thrown into a fiber');
        }
    });
    $thrower->start();
    $thrower->throw(new \Exception('x'));
} finally {
    \point('after fibers');
}

$fiber = new \Fiber(function () {
    try {
        \Fiber::suspend();
    } finally {
        \point('fiber that is destroyed');
    }
});
$fiber->start();
unset($fiber);
