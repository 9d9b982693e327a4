<?php
// What came with PHP 8.1: fibers, enums, weak maps, first-class callables.
function made(string $name): string { return "made-" . $name . str_repeat("-", 20); }
enum Suit: string { case Hearts = 'H'; case Spades = 'S'; const Trump = self::Hearts; }
$fiber = new Fiber(function (string $argument) {
    $local = made('fiber local');
    (function () use ($local) { $deep = made('fiber deep local'); Fiber::suspend(made('suspended value')); })();
    return made('never');
});
$fiber->start(made('fiber argument'));
$done = new Fiber(fn() => made('fiber result'));
$done->start();
$unstarted = new Fiber(function () { return 1; });
$many = [];
for ($i = 0; $i < 5; $i++) {
    $many[$i] = new Fiber(function () use ($i) { $own = made("fiber $i"); Fiber::suspend(); });
    $many[$i]->start();
}
$key = new stdClass;
$map = new WeakMap;
$map[$key] = made('weak map value');
$map[$map] = made('weak map of itself');
$reference = WeakReference::create($key);
class Thing { public function __construct(public readonly string $name) {} public function method() { return $this; } public static function make(mixed ...$all): static { return new static(made('made thing')); } }
$thing = new Thing(made('thing'));
$method = $thing->method(...);
$length = strlen(...);
$make = Thing::make(...);
$hearts = Suit::from('H');
$named = (function (...$arguments) { yield $arguments; })(first: made('named argument'), second: 2);
$named->current();
class Magic { private array $data = []; public function __get($name) { return $this->data[$name] ?? null; } public function __set($name, $value) { $this->data[$name] = $value; } }
$magic = new Magic;
$magic->key = made('magic');
#[Attribute] class Marked { public function __construct(public string $text = 'x') {} }
#[Marked('attribute argument')] class Carrier { #[Marked] public int $x = 1; const LIST = [1, 2, self::class]; }
$attributes = (new ReflectionClass('Carrier'))->getAttributes();
$instance = $attributes[0]->newInstance();
$anonymous = new class(made('anonymous')) { public function __construct(private string $text) {} };
$first = [new WeakMap, null];
$keeping = [new Thing(made('kept key')), new Thing(made('kept referent'))];
$first[0][$keeping[0]] = 1;
$first[1] = WeakReference::create($keeping[1]);
unset($i);
require __DIR__ . '/ready.inc';
