<?php

// Repositories know their unit of work, which knows them and the connection: none is closed when it is let go of, and the
// database runs out of connections before PHP runs out of memory. Needs the extension pdo_sqlite.

declare(strict_types=1);

namespace Store;

final class UnitOfWork
{
    /** @var list<Repository> */
    private array $repositories = [];

    public function __construct(public readonly \PDO $connection)
    {
    }

    public function register(Repository $repository): void
    {
        $this->repositories[] = $repository;
    }
}

final class Repository
{
    public function __construct(private readonly UnitOfWork $work, public readonly string $table)
    {
        $work->register($this);
    }

    public function count(): int
    {
        return (int) $this->work->connection->query("SELECT COUNT(*) FROM $this->table")->fetchColumn();
    }
}

function request(): int
{
    $connection = new \PDO('sqlite::memory:');
    $connection->exec('CREATE TABLE orders (id INTEGER)');
    return (new Repository(new UnitOfWork($connection), 'orders'))->count();
}

for ($request = 0; $request < 20; $request++) {
    request();
}
require __DIR__ . '/ready.inc';
