<?php
// Generators, also those that delegate. For every PHP from 7.0 on.

require __DIR__ . '/point.php';

function plain()
{
    point('generator, first time');
    $sent = yield 1;
    point('generator, resumed');
    try {
        yield 2;
    } finally {
        point('finally of a generator');
    }
}

foreach (plain() as $value) {
}
$generator = plain();
$generator->current();
$generator->send('x');
unset($generator);

function innermost($what)
{
    point("$what, in the innermost");
    yield 1;
    point("$what, in the innermost again");
    return 7;
}

function middle($what)
{
    $result = yield from innermost($what);
    point("$what, in the middle");
    yield 2;
    yield from [3, 4];
}

function outermost($what)
{
    yield from middle(
        $what
    );
    yield from new ArrayIterator([5]);
}

foreach (outermost('delegated twice') as $value) {
}
iterator_to_array(outermost('by a function of PHP'), false);

class Tree implements IteratorAggregate
{
    private $children;

    public function __construct(array $children)
    {
        $this->children = $children;
    }

    #[ReturnTypeWillChange]
    public function getIterator()
    {
        foreach ($this->children as $child) {
            yield from $child->getIterator();
        }
        point('recursive generator method');
        yield 0;
    }
}

foreach (new Tree([new Tree([new Tree([])])]) as $value) {
}

function shared()
{
    for ($i = 0; $i < 4; $i++) {
        point("one generator under several, $i");
        yield $i;
    }
}

function follower($generator)
{
    yield from $generator;
}

$shared = shared();
$first = follower($shared);
$second = follower($shared);
$third = follower($second);
$first->current();
$second->current();
$third->current();
$first->next();
$third->next();
$second->next();
unset($first);
$third->next();

function within()
{
    foreach (plain() as $value) {
        yield $value;
    }
}
foreach (within() as $value) {
}

function thrown_into()
{
    try {
        yield 1;
    } catch (Exception $exception) {
        point('exception thrown into a generator');
        yield 2;
    }
}
function thrown_through()
{
    yield from thrown_into();
}
$generator = thrown_through();
$generator->current();
$generator->throw(new Exception('x'));

$closure = function () {
    point('closure that is a generator');
    yield 1;
};
foreach ($closure() as $value) {
}

function deep($n)
{
    if ($n > 0) {
        yield from deep($n - 1);
    } else {
        point('delegated a hundred times');
        yield 1;
    }
}
foreach (deep(100) as $value) {
}
