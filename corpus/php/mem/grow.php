<?php
// A cache that grows with each line of standard input, beside what does not.
namespace Leak;

class Cart { public $lines = []; public $id; }
class Cache { public static $items = []; }

function fill(int $count) {
    for ($i = 0; $i < $count; $i++) {
        $cart = new Cart;
        $cart->id = 'cart number ' . count(Cache::$items);
        $cart->lines = [$i, "line $i"];
        Cache::$items[] = $cart;
    }
}

$steady = array_fill(0, 1000, 'the same');
fill(1000);
do {
    fwrite(STDERR, 'READY ' . json_encode(['usage' => memory_get_usage(), 'items' => count(Cache::$items)]) . "\n");
    $more = (int) fgets(STDIN);
    fill($more);
} while ($more > 0);
