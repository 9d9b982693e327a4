<?php
// m5_mixed.php without PDO: static props and inheritance, traits, class constants w/ objects, references graph, nested closures, included files, big object graph with cycles + gc roots, unset objects (free handles), temporaries
trait Counts { public static array $hits = []; private int $mine = 0; public function hit(string $k) { self::$hits[$k] = (self::$hits[$k] ?? 0) + 1; $this->mine++; return $this; } }
abstract class Model { use Counts; protected static array $pool = []; public static ?array $nullable = null; protected array $attrs = []; protected array $rel = []; public function __set($k, $v) { $this->attrs[$k] = $v; } public function __get($k) { return $this->attrs[$k] ?? null; } static function make(array $a): static { $o = new static; foreach ($a as $k => $v) $o->$k = $v; return static::$pool[] = $o; } function relate(Model $m) { $this->rel[] = $m; $m->rel[] = $this; } }
class User extends Model { const ROLE = 'user'; const LIST = ['a', 'b', ['c']]; public static $cfg; } class Post extends Model { protected static array $pool = []; public static $cfg = ['post' => true]; }
enum Level: int { case Lo = 1; case Hi = 2; public static function fromLabel(string $l): self { return constant("self::$l"); } const ALIAS = self::Hi; }
include __DIR__ . '/lib.inc'; User::$cfg = new stdClass; User::$cfg->levels = [Level::Lo, Level::fromLabel('Hi')];
for ($i = 0; $i < 200; $i++) { $u = User::make(['name' => "user$i", 'email' => "u$i@example.com", 'age' => $i]); $p = Post::make(['title' => "Post number $i", 'body' => str_repeat("lorem $i ", 20)]); $u->relate($p); $u->hit('u')->hit('p'); }
for ($i = 0; $i < 100; $i++) { $t = new stdClass; $t->self = $t; $t->junk = str_repeat('J', 64); unset($t); } // garbage cycles, not reachable from roots
$holes = []; for ($i = 0; $i < 50; $i++) $holes[] = new stdClass; for ($i = 0; $i < 50; $i += 2) unset($holes[$i]);
$refs = []; $val = 5; for ($i = 0; $i < 10; $i++) $refs[] = &$val; $data = json_decode('{"a":{"b":[1,2,{"c":"d"}]},"e":1.25}'); $doc = new DOMDocument; $doc->loadXML('<r><a x="1">t</a></r>'); $xml = simplexml_load_string('<r><a>1</a></r>'); $re = new ReflectionClass('User'); $di = new DirectoryIterator('.'); $gmp = null; $cl = function () { return $this; }; $lib = lib_fn(); $interval = new DateInterval('P1D'); $period = new DatePeriod(new DateTime('2024-01-01'), $interval, 3);
require __DIR__ . '/wait.inc';
