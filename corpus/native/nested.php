<?php
// Blocks in nested calls of PHP and of C: callbacks of internal functions, a generator and a method. Says `ready` when it does,
// and ends when its input does.
function wait_for_end(): int
{
    echo "ready\n";
    while (fgets(STDIN) !== false) {
    }
    return 0;
}

final class Sorter
{
    public function __invoke(int $left, int $right): int
    {
        return wait_for_end();
    }

    public function sorted(array $numbers): array
    {
        usort($numbers, $this);
        return $numbers;
    }
}

function inner(): iterable
{
    yield 1;
    yield count((new Sorter())->sorted([2, 1]));
}

function outer(): iterable
{
    yield 0;
    yield from inner();
}

function mapped(int $number): int
{
    return $number + array_sum(iterator_to_array(outer(), false));
}

echo array_sum(array_map('mapped', [1])), "\n";
