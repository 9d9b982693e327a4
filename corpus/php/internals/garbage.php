<?php
// What nothing holds but itself, and what only looks like it: 30 objects, 10 arrays with their references and, in between,
// objects that are held.
gc_disable();
class Pair { public $other; public $text; }
for ($i = 0; $i < 10; $i++) {
    $a = new Pair;
    $b = new Pair;
    $a->other = $b;
    $b->other = $a;
    $a->text = str_repeat('g', 100);
    $b->text = new SplObjectStorage;
    $b->text[$a] = $b;
    unset($a, $b);
}
for ($i = 0; $i < 10; $i++) {
    $array = ['text' => str_repeat('a', 50)];
    $array['self'] = &$array;
    unset($array);
}
class Held { public $self; public $text; }
$held = [];
for ($i = 0; $i < 10; $i++) {
    $object = new Held;
    $object->self = $object;
    $held[] = $object;
}
$only = new Held;
register_shutdown_function(function () use ($only) {});
unset($object, $only);
require __DIR__ . '/ready.inc';
