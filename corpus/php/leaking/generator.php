<?php
// A generator that was never finished: what it read stays.
namespace Import;

ini_set('memory_limit', '32M');

function rows(): \Generator
{
    $rows = [];
    for ($number = 0; $number < 9_000; $number++) {
        $rows[] = str_repeat("row $number ", 120);
    }
    foreach ($rows as $row) {
        yield $row;
    }
}

final class Importer
{
    public ?\Generator $rows = null;

    public function peek(): string
    {
        $this->rows = rows();
        return $this->rows->current();
    }
}

$importer = new Importer();
$importer->peek();
require __DIR__ . '/../internals/ready.inc';
