<?php

// A cache in a static property that nothing ever leaves: the worker grows with every product that it is asked about.

declare(strict_types=1);

namespace Shop;

// A small worker: the cache takes half of what it may use.
ini_set('memory_limit', '12M');

final class Price
{
    public function __construct(public readonly int $product, public readonly int $cents, public readonly string $label)
    {
    }
}

final class PriceCache
{
    /** @var array<int, Price> */
    private static array $prices = [];

    public static function of(int $product): Price
    {
        return self::$prices[$product] ??= new Price($product, $product % 10_000, "price of product $product");
    }
}

function serve(int $requests): int
{
    $total = 0;
    for ($request = 0; $request < $requests; $request++) {
        $total += PriceCache::of($request)->cents;
    }
    return $total;
}

serve(40_000);
require __DIR__ . '/ready.inc';
