<?php

// Jobs listen to events of their own dispatcher. Each is held by what it holds, so that it stays when it is done, until PHP
// looks for cycles: that is after 10,000 of them, and each has a payload.

declare(strict_types=1);

namespace Import;

final class Dispatcher
{
    /** @var array<string, list<callable>> */
    private array $listeners = [];

    public function listen(string $event, callable $listener): void
    {
        $this->listeners[$event][] = $listener;
    }

    public function dispatch(string $event): void
    {
        foreach ($this->listeners[$event] ?? [] as $listener) {
            $listener();
        }
    }
}

final class Job
{
    private Dispatcher $events;
    private bool $isDone = false;

    public function __construct(private readonly string $payload)
    {
        $this->events = new Dispatcher();
        $this->events->listen('done', [$this, 'finish']);
    }

    public function run(): int
    {
        $this->events->dispatch('done');
        return strlen($this->payload);
    }

    public function finish(): void
    {
        $this->isDone = true;
    }
}

function import(int $jobs): int
{
    $bytes = 0;
    for ($job = 0; $job < $jobs; $job++) {
        $bytes += (new Job(str_repeat("line of job $job;", 2_500)))->run();
    }
    return $bytes;
}

import(150);
require __DIR__ . '/ready.inc';
