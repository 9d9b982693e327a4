<?php
// A cache in a static property that nothing leaves.
namespace Catalog;

ini_set('memory_limit', '32M');

final class PriceCache
{
    public static array $prices = [];

    public static function of(int $product): string
    {
        return self::$prices[$product] ??= str_repeat("price $product ", 60);
    }
}

for ($product = 0; $product < 16_000; $product++) {
    PriceCache::of($product);
}
require __DIR__ . '/../internals/ready.inc';
