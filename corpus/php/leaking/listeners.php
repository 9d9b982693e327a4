<?php
// Each request adds a listener, and none is ever removed.
namespace Events;

ini_set('memory_limit', '32M');

final class Dispatcher
{
    private array $listeners = [];

    public function on(string $event, callable $listener): void
    {
        $this->listeners[$event][] = $listener;
    }
}

final class Audit
{
    private string $trail;

    public function __construct(int $request)
    {
        $this->trail = str_repeat("request $request;", 80);
    }

    public function placed(): int
    {
        return strlen($this->trail);
    }
}

$dispatcher = new Dispatcher();
for ($request = 0; $request < 9_000; $request++) {
    $dispatcher->on('order.placed', [new Audit($request), 'placed']);
}
require __DIR__ . '/../internals/ready.inc';
