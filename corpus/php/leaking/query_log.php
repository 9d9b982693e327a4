<?php
// An ORM whose connection logs each query with its parameters, in production.
namespace Orm;

ini_set('memory_limit', '32M');

final class DebugStack
{
    public array $queries = [];
    public int $currentQuery = 0;

    public function startQuery(string $sql, array $params): void
    {
        $this->queries[++$this->currentQuery] = ['sql' => $sql, 'params' => $params, 'executionMS' => 0.1];
    }
}

final class Configuration
{
    public ?DebugStack $logger = null;
}

final class Connection
{
    public function __construct(public Configuration $configuration)
    {
    }

    public function execute(string $sql, array $params): void
    {
        $this->configuration->logger?->startQuery($sql, $params);
    }
}

final class EntityManager
{
    public function __construct(public Connection $connection)
    {
    }
}

$configuration = new Configuration();
$configuration->logger = new DebugStack();
$manager = new EntityManager(new Connection($configuration));
for ($id = 0; $id < 15_000; $id++) {
    $sql = "SELECT t0.id, t0.name, t0.created_at, t0.total FROM orders t0 WHERE t0.customer_id = $id AND t0.state = ?";
    $manager->connection->execute($sql, [$id, 'open']);
}
require __DIR__ . '/../internals/ready.inc';
