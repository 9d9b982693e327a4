<?php
// Calls, recursion, a method, a closure, an include and a return value, for Xdebug's trace.
function fib($n) { return $n < 2 ? $n : fib($n - 1) + fib($n - 2); }
class Shop {
    public function order(array $items) { return array_sum(array_map(fn($x) => $x * 2, $items)); }
    public static function open() { usleep(2000); return new self; }
}
$shop = Shop::open();
$total = $shop->order(range(1, 5));
echo fib(5) + $total, "\n";
