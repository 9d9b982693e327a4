<?php
// Values of every kind that PHP 7.0 has, and a line of JSON that says what the program itself knows of them.
namespace Facts;

interface Named { const KIND = 'named'; public function name(); }
trait Counted { public static $count = 0; private $number = 0; public function number() { return $this->number; } }
/** A base with every kind of property. */
abstract class Base implements Named {
    use Counted;
    const LIMITS = ['low' => 1, 'high' => [10, 20]];
    public $label = 'unset';
    protected $list = [1, 2, 3];
    private $hidden = 'of base';
    public static $all = [];
    protected static $shared = ['x' => 'y'];
    public function __construct($label) { $this->label = $label; $this->number = ++self::$count; static::$all[] = $this; }
    public function name() { static $calls = 0; static $seen = []; $seen[] = $this->label; return ++$calls; }
}
class Leaf extends Base { private $hidden = 'of leaf'; public $next; public $price = 1.25; public $flag = true; public $none = null; }
class Other extends Base { public static $all = []; }
class Loose { }

function sum($first, $second = 2, ...$rest) { static $memory = ['warm' => 1]; $memory[$first] = $second; return count($memory); }

define('Facts\TABLE', ['a' => [1, 2], 'b' => 'text']);
$leaves = [];
for ($i = 0; $i < 10; $i++) { $leaves[] = new Leaf("leaf $i"); }
foreach ($leaves as $i => $leaf) { $leaf->next = $leaves[($i + 1) % 10]; }
unset($leaf, $i);
$other = new Other('other');
$loose = new Loose; $loose->first = str_repeat('F', 100); $loose->second = ['deep' => ['deeper' => str_repeat('D', 50)]]; $loose->{'7'} = 'seven';
$packed = range(0, 99); $hash = ['a' => 1, 'b' => 2.5, 'c' => null, 'd' => false, 'e' => true, 'f' => 'f', -5 => 'minus', 1000 => 'thousand'];
$holes = range(0, 31); unset($holes[3], $holes[17], $holes[31]);
$empty = []; $long = str_repeat('L', 5000); $huge = str_repeat('H', 3000000); $word = 'a literal';
$value = 'referenced ' . getmypid(); $one = ['r' => &$value, 's' => &$value]; $self = ['me' => null]; $self['me'] = &$self;
$copies = [$packed, $packed, $packed];
$file = fopen(__FILE__, 'r');
$leaves[0]->name(); $leaves[1]->name(); $other->name(); sum(1); sum(2, 3); sum(4, 5, 6, 7);
set_error_handler('Facts\sum'); restore_error_handler(); set_error_handler(function () { return false; });
set_error_handler(function () { return true; });
set_exception_handler(function () { }); ini_set('precision', '11');

/** Says what is known, from the bottom of a small stack, and waits. */
function tell($depth, array $known, $extra = 'given') {
    $local = str_repeat('x', $depth + 20);
    if ($depth > 0) { return [$local, tell($depth - 1, $known, 'given', 'one more', $depth)]; }
    $known['stack'] = array_map(function ($frame) { return $frame['function']; }, debug_backtrace());
    $known['functions'] = array_map('count', get_defined_functions());
    $known['classes'] = count(get_declared_classes()) + count(get_declared_interfaces()) + count(get_declared_traits());
    $known['constants'] = count(get_defined_constants());
    $known['files'] = get_included_files();
    fwrite(STDERR, 'READY ' . json_encode($known + ['usage' => memory_get_usage(), 'pid' => getmypid()]) . "\n");
    $end = microtime(true) + (float) (getenv('WAIT') ?: 20);
    while (microtime(true) < $end) { usleep(20000); }
}

// Objects get their numbers in the order in which they are made; 7.2 was the first to say so.
$handle = function_exists('spl_object_id') ? 'spl_object_id' : function ($object) use ($leaves, $other) { return $object instanceof Leaf ? array_search($object, $leaves, true) + 1 : ($object === $other ? 11 : 12); };
$known = ['leaves' => array_map($handle, $leaves), 'other' => $handle($other), 'loose' => $handle($loose),
    'counts' => ['packed' => count($packed), 'hash' => count($hash), 'holes' => count($holes), 'empty' => 0, 'leaves' => 10, 'copies' => 3, 'self' => 1],
    'lengths' => ['long' => strlen($long), 'huge' => strlen($huge), 'value' => strlen($value), 'word' => strlen($word)],
    'keys' => ['hash' => array_map('strval', array_keys($hash)), 'holes' => array_map('strval', array_keys($holes))],
    'counted' => Leaf::$count, 'all' => count(Base::$all), 'others' => count(Other::$all)];
tell(3, $known);
