<?php
// Variables of code outside of functions while it includes a file, which replaces and removes some of them.
$kept = str_repeat('k', 100000) . 'kept';
$replaced = str_repeat('o', 100000) . 'old';
$removed = str_repeat('g', 100000) . 'gone';
$untouched = str_repeat('u', 100000) . 'untouched';
require __DIR__ . '/included.inc';
echo $kept, $replaced, $removed, $untouched;
