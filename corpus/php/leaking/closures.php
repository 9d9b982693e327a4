<?php
// Deferred tasks, each of which keeps the whole report that made it.
namespace Office;

ini_set('memory_limit', '32M');

final class Report
{
    private array $rows;

    public function __construct(int $number)
    {
        $this->rows = array_map(fn (int $row) => "row $row of $number " . str_repeat('x', 60), range(1, 200));
    }

    public function task(): \Closure
    {
        return function (): string {
            return 'done';
        };
    }
}

final class Scheduler
{
    public array $tasks = [];
}

$scheduler = new Scheduler();
for ($number = 0; $number < 600; $number++) {
    $scheduler->tasks[] = (new Report($number))->task();
}
require __DIR__ . '/../internals/ready.inc';
