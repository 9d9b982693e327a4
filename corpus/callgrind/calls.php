<?php
function fib(int $n): int { return $n < 2 ? $n : fib($n - 1) + fib($n - 2); }
function words(int $n): array { $words = []; for ($i = 0; $i < $n; $i++) { $words[] = strrev((string)($i * 7919)); } sort($words); return $words; }
class Shop { function first(): int { return count(words(50)) + fib(6); } function second(): int { return count(words(20)); } }
$shop = new Shop;
for ($i = 0; $i < 3; $i++) { $shop->first(); $shop->second(); }
