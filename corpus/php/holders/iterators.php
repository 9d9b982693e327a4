<?php
// Garbage whose cycles lead through data of PHP's own classes: each holds itself through an iterator over it.
gc_disable();
class Rows extends ArrayIterator { public $outer; public $text; }
for ($i = 0; $i < 20; $i++) {
    $rows = new Rows([]);
    $rows->text = str_repeat('r', 20000);
    $rows->outer = new IteratorIterator($rows);
}
unset($rows);
require __DIR__ . '/wait.inc';
