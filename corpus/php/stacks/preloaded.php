<?php
// Functions, classes, closures and generators of a file that the engine may have preloaded. For every PHP from 7.4 on.

require __DIR__ . '/point.php';
require_once __DIR__ . '/parts/preloaded.php';

class Own extends Preloaded\Machine
{
    public function run(): void
    {
        point('method that overrides a preloaded one');
        parent::run();
    }
}

Preloaded\outer(3);
foreach (Preloaded\steps() as $step) {
    $last = $step;
}
$machine = new Own();
$machine->run();
$machine->anything;
$machine = null;
