<?php
// A registry that entities are attached to, and never detached from.
namespace Registry;

ini_set('memory_limit', '32M');

final class Entity
{
    public string $body;

    public function __construct(int $number)
    {
        $this->body = str_repeat("entity $number ", 70);
    }
}

final class UnitOfWork
{
    private \SplObjectStorage $entities;

    public function __construct()
    {
        $this->entities = new \SplObjectStorage();
    }

    public function manage(Entity $entity): void
    {
        $this->entities->attach($entity, ['state' => 1]);
    }
}

$unit = new UnitOfWork();
for ($number = 0; $number < 12_000; $number++) {
    $unit->manage(new Entity($number));
}
require __DIR__ . '/../internals/ready.inc';
