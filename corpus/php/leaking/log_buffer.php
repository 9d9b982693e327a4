<?php
// A handler that keeps each record, because nothing flushes it.
namespace Log;

ini_set('memory_limit', '32M');

final class BufferHandler
{
    private array $records = [];

    public function handle(int $job): void
    {
        $message = "job $job ran: " . str_repeat('detail ', 40);
        $this->records[] = ['level' => 200, 'message' => $message, 'context' => ['job' => $job], 'channel' => 'app'];
    }
}

final class Logger
{
    public function __construct(private BufferHandler $handler)
    {
    }

    public function info(int $job): void
    {
        $this->handler->handle($job);
    }
}

$logger = new Logger(new BufferHandler());
for ($job = 0; $job < 13_000; $job++) {
    $logger->info($job);
}
require __DIR__ . '/../internals/ready.inc';
