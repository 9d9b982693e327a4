<?php
// What PHP is to call by itself: at the end, for classes that are missing, for output. Then a call in the arguments of others.
class Called { public $name; function __construct($name) { $this->name = $name; } function end($with) { } function __invoke($class) { } static function find($class) { } }
function ended($with, $more) { }
function found($class) { }
register_shutdown_function('ended', ['with' => str_repeat('shut', 10)], 2);
register_shutdown_function(array(new Called('shutdown'), 'end'), 'x');
register_shutdown_function(function () { return __LINE__; });
spl_autoload_register('found');
spl_autoload_register(array(new Called('autoload'), '__invoke'));
spl_autoload_register(function ($class) { return __LINE__; });
spl_autoload_register('Called::find');
ob_start(function ($text) { return $text; });
echo str_repeat('outer', 100);
ob_start();
echo str_repeat('inner', 10);
function outer($first, $second, $third, $fourth = null) { return $first; }
class Prepared { function call($given, $object, $result) { return $result; } }
function work($depth) { return outer(str_repeat('p', 30), ['given' => str_repeat('q', 20)], (new Prepared)->call(str_repeat('r', 25), new Called('argument'), waits($depth)), 'behind'); }
function waits($depth) { if ($depth > 0) { return strlen(implode(',', [str_repeat('s', 15), waits($depth - 1)])); } require __DIR__ . '/ready.inc'; return 1; }
work(1);
