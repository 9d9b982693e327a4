<?php
// The classes and functions of depot.php.

namespace Depot;

enum Size: int
{
    case Small = 1;
    case Middle = 2;
    case Large = 3;
}

final class Crate
{
    public ?Crate $below = null;

    public function __construct(public readonly string $content, public readonly Size $size)
    {
    }
}

final class Aisle
{
    public readonly string $name;
    private array $crates = [];

    public function __construct(int $number, int $crates)
    {
        $this->name = "aisle $number";
        $last = null;
        for ($at = 0; $at < $crates; $at++) {
            $crate = new Crate("content $at of $this->name", Size::from($at % 3 + 1));
            $crate->below = $last;
            $this->crates["crate $at"] = $last = $crate;
        }
    }

    public function crates(): array
    {
        return $this->crates;
    }

    public function weigh(): int
    {
        $weight = 0;
        foreach ($this->crates as $crate) {
            $weight += $crate->size->value;
        }
        return $weight;
    }

    public function counter(string $what): \Closure
    {
        $count = 0;
        return function () use ($what, &$count) {
            $count += count($this->crates);
            return "$what: $count";
        };
    }
}

final class Register
{
    private static array $entries = [];

    public static function fill(int $count): void
    {
        for ($number = 0; $number < $count; $number++) {
            self::$entries["entry $number"] = "value of entry $number";
        }
    }

    public static function count(): int
    {
        static $calls = [];
        $calls[] = "call of " . __METHOD__;
        return count(self::$entries);
    }
}

final class Order
{
    public array $lines = [];
    public string $text;
}

final class Line
{
    public function __construct(public Order $order)
    {
    }
}

function pick(Aisle $aisle): \Generator
{
    foreach ($aisle->crates() as $name => $crate) {
        $note = "picked $name";
        yield $note => $crate;
    }
}

function scroll(int $number)
{
    $stream = fopen('php://memory', 'w+');
    fwrite($stream, str_repeat("line of scroll $number\n", 100));
    return $stream;
}

/** Makes orders that nothing holds but their lines. */
function lose(int $orders): void
{
    for ($number = 0; $number < $orders; $number++) {
        $order = new Order();
        $order->text = str_repeat("order $number;", 2000);
        $order->lines[] = new Line($order);
    }
}
