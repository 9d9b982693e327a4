<?php
// A depot: every kind of thing that a program holds, in known numbers, and a leak. It is the same in every mode of the engine.
// The classes and functions are in a file of their own, which one mode loads before the first request.

namespace Depot;

require_once __DIR__ . '/classes.php';

gc_disable();
$aisles = array_map(fn ($number) => new Aisle($number, 40), range(1, 12));
Register::fill(1000);
Register::count();
$counters = array_map(fn ($aisle) => $aisle->counter("count of {$aisle->name}"), $aisles);
$pickers = array_map(pick(...), $aisles);
foreach ($pickers as $picker) {
    $picker->next();
}
$labels = array_map(fn ($number) => str_repeat("label $number;", 20), range(1, 300));
$streams = array_map(scroll(...), range(1, 8));
$plan = fopen(__FILE__, 'r');
fgets($plan);
$storage = new \SplObjectStorage();
$weak = new \WeakMap();
foreach ($aisles as $aisle) {
    $storage[$aisle] = $aisle->name;
    $weak[$aisle] = "note on {$aisle->name}";
}
$total = 0;
foreach ($aisles as $aisle) {
    $total += $aisle->weigh();
}
// How much the leak is: what collecting it frees.
lose(3);
gc_collect_cycles();
lose(300);
$leaked = \memory_get_usage();
gc_collect_cycles();
$leaked -= \memory_get_usage();
lose(300);
unset($aisle, $picker);
$opcache = \function_exists('opcache_get_status') ? \opcache_get_status() : false;

$facts = [
    'objects' => [
        'Depot\Aisle' => count($aisles),
        'Depot\Crate' => 12 * 40,
        'Depot\Size' => 3,
        'Depot\Order' => 300,
        'Depot\Line' => 300,
        'Closure' => count($counters) + 1, // That of the generators.
        'Generator' => count($pickers),
        'SplObjectStorage' => 1,
        'WeakMap' => 1,
    ],
    'leaked' => $leaked,
    'engine' => [
        'opcache' => $opcache['opcache_enabled'] ?? false,
        'cached' => isset($opcache['scripts'][__DIR__ . '/classes.php']),
        'jit' => $opcache['jit']['on'] ?? false,
        'files' => isset($opcache['file_cache']),
        'preloaded' => isset($opcache['preload_statistics']),
        'xdebug' => \function_exists('xdebug_info') ? \implode(',', \xdebug_info('mode')) : null,
        'allocator' => \memory_get_usage() > 0,
    ],
];
unset($opcache);
$ready = 'READY ' . json_encode($facts + ['real' => \memory_get_usage(true), 'usage' => \memory_get_usage()]) . "\n";
unset($facts);
fwrite(STDERR, $ready);
sleep((int) (getenv('WAIT') ?: 20));
