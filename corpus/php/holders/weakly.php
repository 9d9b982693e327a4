<?php
// Garbage with weak references to objects that are held: PHP lists the weak references to each object, several in a table.
gc_disable();
class Watcher { public $self; public $map; public $reference; public $text; }
$watched = [];
for ($i = 0; $i < 20; $i++) {
    $watched[$i] = new stdClass;
    $watcher = new Watcher;
    $watcher->self = $watcher;
    $watcher->map = new WeakMap;
    $watcher->map[$watched[$i]] = str_repeat('v', 5000);
    $watcher->reference = WeakReference::create($watched[$i]);
    $watcher->text = str_repeat('t', 5000);
}
unset($watcher);
require __DIR__ . '/wait.inc';
