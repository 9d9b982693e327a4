<?php
// A function that remembers its result for each argument that it ever got.
namespace Tax;

ini_set('memory_limit', '32M');

function rate(string $address): array
{
    static $memo = [];
    return $memo[$address] ??= ['address' => $address, 'rates' => range((int) $address, (int) $address + 29)];
}

for ($number = 0; $number < 13_000; $number++) {
    rate("$number Long Street, Village $number");
}
require __DIR__ . '/../internals/ready.inc';
