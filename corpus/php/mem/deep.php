<?php
// deep.php N : a list of N objects, arrays in arrays N deep, all reached from one end only
final class Link { public $next; public function __construct($next) { $this->next = $next; } }
$n = (int) $argv[1]; $list = null; $nested = [];
for ($i = 0; $i < $n; $i++) { $list = new Link($list); $nested = [$nested]; }
$ring = new Link(null); $ring->next = $ring; $ring->self = [$ring]; $ring->self[] = &$ring->self;
require __DIR__ . '/wait.inc';
