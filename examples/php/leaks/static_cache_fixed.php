<?php

// The same with a bound: the price that has been there for longest makes room.

declare(strict_types=1);

namespace Shop;

final class Price
{
    public function __construct(public readonly int $product, public readonly int $cents, public readonly string $label)
    {
    }
}

final class PriceCache
{
    private const MOST = 500;

    /** @var array<int, Price> */
    private static array $prices = [];

    public static function of(int $product): Price
    {
        if (isset(self::$prices[$product])) {
            return self::$prices[$product];
        }
        if (count(self::$prices) >= self::MOST) {
            unset(self::$prices[array_key_first(self::$prices)]);
        }
        return self::$prices[$product] = new Price($product, $product % 10_000, "price of product $product");
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
