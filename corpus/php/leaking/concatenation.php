<?php
// An export that is put together in memory, line by line.
namespace Export;

ini_set('memory_limit', '64M');

final class CsvWriter
{
    private string $buffer = '';

    public function write(array $row): void
    {
        $this->buffer .= implode(',', $row) . "\n";
    }
}

$writer = new CsvWriter();
for ($row = 0; $row < 400_000; $row++) {
    $writer->write([$row, 'a product with a name', $row * 7, 'in stock']);
}
require __DIR__ . '/../internals/ready.inc';
