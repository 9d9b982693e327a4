<?php
// A worker between two jobs: the last thousand results, a pool of buffers, and what the jobs needed is gone.
namespace Queue;

ini_set('memory_limit', '512M');

final class Job
{
    public array $payload;

    public function __construct(public int $id)
    {
        $this->payload = array_fill(0, 200, "payload of $id");
    }
}

final class Result
{
    public function __construct(public int $job, public float $seconds, public string $message)
    {
    }
}

final class Worker
{
    private array $results = [];
    private array $handlers = [];
    private array $buffers = [];
    private ?Job $current = null;

    public function __construct()
    {
        for ($number = 0; $number < 120; $number++) {
            $this->handlers["App\\Message\\Message$number"] = fn (Job $job): string => "handled {$job->id} " . $number;
        }
        for ($number = 0; $number < 32; $number++) {
            $this->buffers[] = str_repeat(chr(65 + $number), 128 << 10);
        }
    }

    public function work(Job $job): void
    {
        $this->current = $job;
        $handler = $this->handlers['App\\Message\\Message' . $job->id % 120];
        $this->results[] = new Result($job->id, 0.25, $handler($job));
        if (count($this->results) > 1_000) {
            array_shift($this->results);
        }
        $this->current = null;
    }
}

$worker = new Worker();
for ($id = 0; $id < 5_000; $id++) {
    $worker->work(new Job($id));
}
require __DIR__ . '/../internals/ready.inc';
