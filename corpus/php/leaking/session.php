<?php
// A worker in which the session of one request is still there in the next one.
ini_set('memory_limit', '32M');

$_SESSION = [];

function visit(int $request): void
{
    $_SESSION['flashes'][] = ['type' => 'notice', 'text' => "request $request: " . str_repeat('saved ', 60)];
}

for ($request = 0; $request < 15_000; $request++) {
    visit($request);
}
require __DIR__ . '/../internals/ready.inc';
