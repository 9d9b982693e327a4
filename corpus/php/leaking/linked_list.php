<?php
// A linked list that only its head keeps.
ini_set('memory_limit', '32M');

final class N
{
    public $next;
    public $v;
}

$h = null;
for ($i = 0; $i < 200_000; $i++) {
    $n = new N();
    $n->next = $h;
    $n->v = $i;
    $h = $n;
}
unset($n);
require __DIR__ . '/../internals/ready.inc';
while ($h) {
    $next = $h->next;
    $h->next = null;
    $h = $next;
}
