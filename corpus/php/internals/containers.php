<?php
// Containers of PHP's own classes, each with a value that is nowhere else: `made('x')` is a string made at run time.
function made($name) { return "made-" . $name . str_repeat("-", 20); }

$storage = new SplObjectStorage;
$storage[new ArrayObject([made('object storage key')])] = made('object storage value');
for ($i = 0; $i < 20; $i++) $storage[new stdClass] = made("object storage value $i");
$array = new ArrayObject(['in' => [made('array object')]]);
$iterator = new ArrayIterator([made('array iterator')]);
$fixed = new SplFixedArray(3);
$fixed[1] = made('fixed array');
$list = new SplDoublyLinkedList;
$queue = new SplQueue;
$stack = new SplStack;
foreach ([[$list, 'linked list'], [$queue, 'queue'], [$stack, 'stack']] as $pair) {
    for ($i = 0; $i < 10; $i++) $pair[0]->push(made("$pair[1] $i"));
}
$heap = new SplMinHeap;
$heap->insert(made('heap'));
$priorities = new SplPriorityQueue;
for ($i = 0; $i < 10; $i++) $priorities->insert(made("priority queue $i"), $i);
$nested = new ArrayObject(new ArrayObject([made('nested array object')]));
$caching = new CachingIterator(new ArrayIterator([made('caching iterator'), 2, 3]));
$caching->rewind();
$limit = new LimitIterator(new InfiniteIterator(new ArrayIterator([made('limit iterator')])), 0, 5);
$limit->rewind();
$append = new AppendIterator;
$append->append(new ArrayIterator([made('append iterator')]));
$multiple = new MultipleIterator(MultipleIterator::MIT_KEYS_ASSOC);
$multiple->attachIterator(new ArrayIterator([made('multiple iterator')]), 'info');
class Own extends SplObjectStorage { public $more; }
$own = new Own;
$own->more = made('property of a container');
$own[new stdClass] = made('own storage');
$closure = function () use ($storage) { return made('never'); };
$bound = made('bound variable');
$binding = function () use ($bound) { static $counted = 0; return $counted++; };
$bound = null;
$generating = (function ($argument) { $local = made('generator local'); $sent = yield made('generator key') => made('generator value'); return $local . $sent . $argument; })(made('generator argument'));
$generating->current();
$delegating = (function () { yield 1; yield from (function () { $inner = made('inner generator'); yield 2; return $inner; })(); })();
$delegating->current();
$delegating->next();
$reflection = new ReflectionClass('Own');
$method = new ReflectionMethod('Own', 'attach');
$date = new DateTime('2024-01-02 03:04:05');
$interval = new DateInterval('P1D');
$period = new DatePeriod($date, $interval, 3);
$memory = fopen('php://memory', 'w+');
fwrite($memory, made('memory stream'));
$temporary = fopen('php://temp', 'w+');
fwrite($temporary, made('temporary stream'));
$file = fopen(__FILE__, 'r');
fgets($file);
$context = stream_context_create(['http' => ['header' => made('stream context')]]);
register_shutdown_function(function ($argument) {}, made('shutdown argument'));
spl_autoload_register(function ($class) use ($date) {});
set_error_handler(function () { return false; });
ob_start(function ($buffer) { return $buffer; });
echo made('output buffer');
unset($i, $pair);
require __DIR__ . '/ready.inc';
