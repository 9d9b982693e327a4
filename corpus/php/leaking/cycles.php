<?php
// A graph of parents and children that is dropped for each request, and collected too rarely.
namespace Tree;

ini_set('memory_limit', '32M');

final class Branch
{
    public array $leaves = [];
}

final class Leaf
{
    public string $text;

    public function __construct(public Branch $branch, int $number)
    {
        $this->text = str_repeat("leaf $number ", 300);
        $branch->leaves[] = $this;
    }
}

for ($number = 0; $number < 4_000; $number++) {
    new Leaf(new Branch(), $number);
}
require __DIR__ . '/../internals/ready.inc';
