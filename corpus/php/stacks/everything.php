<?php
// One stack with a bit of everything, for recordings. For every PHP from 7.0 on.

namespace App\Shop;

require __DIR__ . '/point.php';

abstract class Query
{
    abstract protected function rows();

    public function __call($name, $arguments)
    {
        foreach ($this->$name(...$arguments) as $row) {
            return $row;
        }
    }

    public function run()
    {
        return eval('return $this->each(
            [1, 2]
        );');
    }

    private function each(array $ids)
    {
        return array_map(function ($id) {
            foreach ($this->rows() as $row) {
                return $row;
            }
        }, $ids);
    }
}

function connect($attempts)
{
    if ($attempts > 0) {
        return connect($attempts - 1);
    }
    \point('everything');
}

function fetch()
{
    yield connect(3);
}

function fetch_all()
{
    yield from fetch();
}

$query = new class extends Query {
    protected function rows()
    {
        yield from fetch_all();
    }
};

$GLOBALS['callback'] = function () use ($query) {
    return $query->run();
};

function within_a_fiber($callback)
{
    if (!class_exists('Fiber', false)) {
        return $callback();
    }
    $fiber = new \Fiber(function () use ($callback) {
        return $callback();
    });
    return $fiber->start();
}

include __DIR__ . '/parts/everything.php';
