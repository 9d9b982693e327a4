<?php

// The same with static closures, which keep only what they use.

declare(strict_types=1);

namespace Office;

final class Scheduler
{
    /** @var list<\Closure> */
    private static array $tasks = [];

    public static function later(\Closure $task): void
    {
        self::$tasks[] = $task;
    }
}

final class Report
{
    /** @var list<string> */
    private array $rows = [];

    public function __construct(private readonly int $number)
    {
        for ($row = 0; $row < 300; $row++) {
            $this->rows[] = "row $row of report $number";
        }
    }

    public function send(): int
    {
        $number = $this->number;
        Scheduler::later(static function () use ($number): void {
            @unlink("/tmp/report-$number.pdf");
        });
        return count($this->rows);
    }
}

for ($number = 0; $number < 200; $number++) {
    (new Report($number))->send();
}
require __DIR__ . '/ready.inc';
