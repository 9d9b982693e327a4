<?php

// All lines of an export at once, in a worker that may have 32 MiB.

declare(strict_types=1);

namespace Export;

ini_set('memory_limit', '32M');

final class Exporter
{
    /** @return list<string> */
    public function lines(int $count): array
    {
        $lines = [];
        for ($line = 0; $line < $count; $line++) {
            $lines[] = str_pad("$line;customer $line;", 990, '-');
        }
        return $lines;
    }
}

$lines = (new Exporter())->lines(30_500);
require __DIR__ . '/ready.inc';
