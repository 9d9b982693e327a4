<?php
// Code of files and of eval. For every PHP from 7.0 on.

require __DIR__ . '/point.php';

function load($file)
{
    return include __DIR__ . "/parts/$file.php";
}

$GLOBALS['note'] = 'included from the main file';
include __DIR__ . '/parts/leaf.php';
$GLOBALS['note'] = 'included from a function';
load('leaf');
$GLOBALS['note'] = 'included from an included file';
load('branch');
$GLOBALS['note'] = 'closure of an included file';
$callback = load('callback');
$callback();
require_once __DIR__ . '/parts/once.php';

eval('point("eval");');
eval("\n\n\npoint('eval on its fourth line');");
eval('function of_eval() {
    point("function of eval");
}');
of_eval();
eval('eval("point(\'eval in eval\');");');
$callback = eval('return function () {

    point("closure of eval");
};');
$callback();
eval('include __DIR__ . "/parts/leaf.php";');

// The same address again and again, other lines each time.
for ($i = 1; $i < 8; $i++) {
    eval(str_repeat("\n", $i) . "point('eval in a loop, $i');" . str_repeat("\n", 8 - $i));
}
for ($i = 1; $i < 4; $i++) {
    $callback = eval(str_repeat("\n", $i) . 'return function () {' . str_repeat("\n", $i) . "point('closure of eval in a loop, $i'); };" . str_repeat("\n", 12 - 2 * $i));
    $callback();
    unset($callback);
}
