<?php
// Ten rounds of leaks: objects that only hold themselves, made in ordinary ways. Between them, closures and objects of PHP's own
// classes take the blocks of freed objects that were larger: the addresses of the leaks remain behind them.
gc_disable();
class Leak
{
    public $self;
    public $text;
    function __construct() { $this->self = $this; $this->text = str_repeat('leak', 100); }
}
class FiberLeak extends Leak {}
class Wide17 { public $a0, $a1, $a2, $a3, $a4, $a5, $a6, $a7, $a8, $a9, $b0, $b1, $b2, $b3, $b4, $b5, $b6; }
class Wide21 extends Wide17 { public $c0, $c1, $c2, $c3; }

$ways = [
    function () { $leak = new Leak; $use = function () use ($leak) { return $leak; }; $use(); },
    function () { array_map(function () { return new Leak; }, [1]); },
    function () {
        $pair = [new Leak, new Leak];
        usort($pair, function ($one, $other) { return strcmp(spl_object_hash($one), spl_object_hash($other)); });
    },
    function () { foreach ((function () { yield new Leak; })() as $leak) unset($leak); },
    function () { try { $leak = new Leak; throw new Exception; } catch (Exception $error) {} },
    function () { unserialize(serialize(new Leak)); },
    function () {
        foreach ([new Wide17, new Wide21] as $wide) foreach ($wide as $name => $value) $wide->$name = new Leak;
    },
    function () { $leak = new Leak; $leak->self = new SplObjectStorage; $leak->self[$leak] = $leak; },
    function () { $leak = new Leak; $reference = &$leak; $array = [&$reference]; $leak->self = &$array; },
    function () {
        if (!class_exists('Fiber')) return;
        $fiber = new Fiber(function () { $leak = new FiberLeak; Fiber::suspend($leak); });
        $fiber->start();
        $fiber->resume();
    },
];
$keep = [];
for ($round = 0; $round < 10; $round++) {
    foreach ($ways as $way) {
        $way();
        $keep[] = function () use ($round) { return $round; };
        $keep[] = new ArrayObject([$round]);
        $keep[] = new DateTime('2026-01-01', new DateTimeZone('UTC'));
        $keep[] = new SplObjectStorage;
    }
}
unset($way, $round);
require 'ready.inc';
