<?php
// What preloaded.php uses. The engine may have loaded it before the program started.

namespace Preloaded;

interface Step
{
    public function run(): void;
}

trait Halting
{
    public static function halt(string $where): void
    {
        \point($where);
    }
}

abstract class Base implements Step
{
    use Halting;

    public function run(): void
    {
        self::halt('method of a preloaded class');
        static::late();
    }

    abstract protected static function late(): void;
}

class Machine extends Base
{
    protected static function late(): void
    {
        self::halt('late static binding between preloaded classes');
        array_map(fn ($what) => self::halt($what), ['closure of a preloaded class, called by PHP']);
    }

    public function __get($name)
    {
        self::halt('magic method of a preloaded class');
        return $name;
    }

    public function __destruct()
    {
        self::halt('destructor of a preloaded class');
    }
}

function steps()
{
    \point('generator of a preloaded file');
    yield 1;
    yield from inner();
}

function inner()
{
    \point('delegate of a preloaded file');
    yield 2;
}

function outer($depth)
{
    $depth > 0 ? outer($depth - 1) : \point('preloaded function, recursive');
}
