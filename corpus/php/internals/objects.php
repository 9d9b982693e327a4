<?php
// Arrays and objects in the words of PHP 7.0.
class Item { public $id; public $name; public $tags = []; public $next; protected $hidden = ['default']; private static $all = []; const KINDS = ['a', 'b']; public function __construct($id) { $this->id = $id; $this->name = "item $id"; self::$all[$id] = $this; } public static function count() { static $calls = 0; return ++$calls; } }
interface Named { const NAME = 'n'; public function name(); }
trait Naming { public $naming = 'x'; public function name() { return $this->naming; } }
class Both extends Item implements Named { use Naming; }
$previous = null;
for ($i = 0; $i < 100; $i++) { $item = new Item($i); $item->tags = ["t$i", 'common', $i]; $item->next = $previous; $item->dynamic = "dynamic $i"; $previous = $item; Item::count(); }
$both = new Both(1000);
$packed = range(1, 500);
$hash = [];
for ($i = 0; $i < 300; $i++) $hash["key $i"] = "value $i";
unset($hash['key 7']);
$shared = ['x' => str_repeat('S', 1000)];
$copies = [$shared, $shared, $shared];
$referenced = 'referenced' . $i;
$references = [&$referenced, &$referenced];
$itself = [1];
$itself[] = &$itself;
$big = str_repeat('B', 3000000);
$large = array_fill(0, 200000, 1);
$nested = [];
$at = &$nested;
for ($i = 0; $i < 1000; $i++) { $at['child'] = []; $at = &$at['child']; }
unset($at, $i, $item, $previous);
require __DIR__ . '/ready.inc';
