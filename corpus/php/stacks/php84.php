<?php
// Property hooks, lazy objects, calls without frames: PHP 8.4.

namespace App;

require __DIR__ . '/point.php';

class Hooked
{
    public string $name {
        get {
            \point('hook that gets');
            return 'x';
        }
        set(string $value) {
            \point('hook that sets');
        }
    }

    public int $short {
        get => \point('short hook') ?? 1;
    }
}

$hooked = new Hooked();
$hooked->name;
$hooked->name = 'y';
$hooked->short;
array_map(fn () => $hooked->name, [1]);

class Lazy
{
    public int $id;

    public function __construct()
    {
        \point('constructor of a lazy object');
        $this->id = 1;
    }
}
$ghost = (new \ReflectionClass(Lazy::class))->newLazyGhost(function (Lazy $lazy) {
    $lazy->__construct();
});
$ghost->id;
$proxy = (new \ReflectionClass(Lazy::class))->newLazyProxy(fn () => new Lazy());
$proxy->id;

class Text
{
    public function __toString(): string
    {
        \point('__toString below a call without a frame');
        return 'x';
    }
}
$text = new Text();
function without_frames($text)
{
    $parts = \implode(',', [$text, $text]);
    $place = \strpos($text, 'x');
    $clean = \trim($text);
    return \str_contains('x', $text);
}
without_frames($text);

new Lazy()->id;
\array_find([1], fn ($x) => \point('array_find') ?? true);
