<?php
// More arguments and literals than sixteen bits count, and expressions that wait for their constants.
class Waiting { public $expression = LATER . 'x' . LATER; public $list = [LATER, [1, LATER]]; const LIST = [LATER, 'y']; }
$literals = '';
for ($i = 0; $i < 70000; $i++) $literals .= "strlen([$i]);";
eval("function literals() { $literals }");
unset($literals, $i);
function strings() { for ($i = 0; $i < 70000; $i++) yield "argument $i"; }
function take() { require __DIR__ . '/ready.inc'; }
take(...strings());
