<?php

// The same, a line at a time.

declare(strict_types=1);

namespace Export;

ini_set('memory_limit', '32M');

final class Exporter
{
    /** @return \Generator<int, string> */
    public function lines(int $count): \Generator
    {
        for ($line = 0; $line < $count; $line++) {
            yield str_pad("$line;customer $line;", 990, '-');
        }
    }
}

$bytes = 0;
foreach ((new Exporter())->lines(30_500) as $line) {
    $bytes += strlen($line);
}
require __DIR__ . '/ready.inc';
