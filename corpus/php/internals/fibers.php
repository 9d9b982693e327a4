<?php
// Fibers in every state: suspended, ended, not started, running, and one that waits for the one that it has resumed.
function made(string $name): string { return "made-" . $name . str_repeat("-", 20); }
class Kept { public function __construct(public string $text) {} }
function suspends(Kept $given, int $left) {
    $local = new Kept(made("returned local $left"));
    return $left > 0 ? suspends(new Kept(made("returned argument $left")), $left - 1) : Fiber::suspend();
}
function deep(int $left, string $text) {
    $own = $text;
    return $left > 0 ? deep($left - 1, $text) : Fiber::suspend();
}
function waits() { require __DIR__ . '/ready.inc'; }
function innermost() {
    suspends(new Kept(made('returned')), 3);
    $mine = made('of the innermost');
    waits();
}
function resumes() {
    suspends(new Kept(made('returned')), 5);
    // Where the objects stood of the calls that have returned.
    $keep = [];
    for ($i = 0; $i < 40; $i++) $keep[] = new Kept(made("kept $i"));
    $inner = new Fiber('innermost');
    $inner->start();
    $inner->resume();
}
$ended = new Fiber(fn() => made('result'));
$ended->start();
// Where the stack stood of the fiber that has ended.
$place = "made-" . str_pad('in its place', 16000, '.') . str_repeat("-", 20);
$thrown = new Fiber(function () { throw new Exception(made('thrown')); });
try { $thrown->start(); } catch (Exception $caught) {}
$unstarted = new Fiber('waits');
$many = [];
for ($i = 0; $i < 20; $i++) {
    $many[$i] = new Fiber('deep');
    $many[$i]->start(0, made("suspended $i"));
}
$pages = new Fiber('deep');
$pages->start(1000, made('on many pages'));
// A page for more arguments than a chunk has room for.
$arguments = new Fiber(fn(...$all) => deep(1000, made('behind arguments')));
$arguments->start(...array_fill(0, 140000, 0));
$running = new Fiber('resumes');
$running->start();
array_merge([made('prepared')], (array) $running->resume());
