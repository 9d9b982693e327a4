<?php
// Functions, methods, closures, and what PHP calls by itself. For every PHP from 7.0 on.

namespace App\Plain {
    function outer($depth)
    {
        if ($depth > 0) {
            return outer($depth - 1);
        }
        \point('function of a namespace, recursive');
    }

    function arguments_on_many_lines()
    {
        return max(
            1,
            value(
                2
            ),
            3
        );
    }

    function value($of)
    {
        \point('call on many lines');
        return $of;
    }
}

namespace App\Classes {
    abstract class Base
    {
        protected $name = 'x';

        public function __construct()
        {
            \point('constructor');
        }

        public function run()
        {
            return $this->doRun();
        }

        abstract protected function doRun();

        public static function make()
        {
            return new static();
        }

        public function __destruct()
        {
            \point('destructor');
        }
    }

    trait Speaks
    {
        public function speak()
        {
            \point('method of a trait');
        }

        public static function shout()
        {
            \point('static method of a trait');
        }
    }

    final class Child extends Base
    {
        use Speaks;

        protected function doRun()
        {
            \point('method by way of its parent');
            $this->speak();
            self::shout();
            return $this;
        }

        public static function factory()
        {
            return parent::make();
        }
    }

    class Magic implements \ArrayAccess, \Countable, \IteratorAggregate
    {
        private $seen = 0;

        public function __get($name) { \point('__get'); return 1; }
        public function __set($name, $value) { \point('__set'); }
        public function __isset($name) { \point('__isset'); return true; }
        public function __unset($name) { \point('__unset'); }
        public function __call($name, $arguments) { \point('__call'); }
        public static function __callStatic($name, $arguments) { \point('__callStatic'); }
        public function __invoke($of) { \point('__invoke'); return $of; }
        public function __toString() { \point('__toString'); return 'x'; }
        public function __clone() { \point('__clone'); }
        #[\ReturnTypeWillChange]
        public function offsetGet($at) { \point('offsetGet'); return 1; }
        #[\ReturnTypeWillChange]
        public function offsetSet($at, $value) { \point('offsetSet'); }
        #[\ReturnTypeWillChange]
        public function offsetExists($at) { \point('offsetExists'); return true; }
        #[\ReturnTypeWillChange]
        public function offsetUnset($at) { \point('offsetUnset'); }
        #[\ReturnTypeWillChange]
        public function count() { \point('count'); return 1; }
        #[\ReturnTypeWillChange]
        public function getIterator() { \point('getIterator'); return new \ArrayIterator([1]); }
    }
}

namespace App\Closures {
    class Holder
    {
        private $v = 3;

        public function bound()
        {
            return function () {
                \point('closure with $this');
                return $this->v;
            };
        }

        public static function unbound()
        {
            return static function ($f) {
                return $f(function () {
                    \point('closure in a closure');
                });
            };
        }
    }

    class Other
    {
    }

    function all()
    {
        (new Holder())->bound()();
        (Holder::unbound())(function ($f) {
            $f();
        });
        $rebound = \Closure::bind(function () {
            \point('closure bound to another class');
        }, null, Other::class);
        $rebound();
        $rebound->call(new Other());
        $rebound->__invoke();
    }
}

namespace {
    require __DIR__ . '/point.php';

    function by_name($x = null)
    {
        point('called by name');
        return 0;
    }

    App\Plain\outer(3);
    App\Plain\arguments_on_many_lines();

    $child = App\Classes\Child::factory();
    $child->run();
    unset($child);

    $anonymous = new class {
        public function run()
        {
            point('method of a class without a name');
        }
    };
    $anonymous->run();

    $magic = new App\Classes\Magic();
    $magic->foo;
    $magic->bar = 1;
    isset($magic->foo);
    unset($magic->foo);
    $magic->called(1, 2);
    App\Classes\Magic::called_statically(3);
    $magic(4);
    "$magic";
    $copy = clone $magic;
    $magic[1];
    $magic[1] = 2;
    isset($magic[1]);
    unset($magic[1]);
    count($magic);
    foreach ($magic as $one) {
    }
    call_user_func([$magic, 'through_an_array']);
    array_map($magic, [1]);
    array_map([$magic, 'nothing_of_this_name'], [1]);

    App\Closures\all();

    array_map(function ($x) {
        point('closure called by a function of PHP');
    }, [1]);
    array_map('by_name', [1]);
    $numbers = [2, 1];
    usort($numbers, function ($a, $b) {
        point('usort');
        return $a <=> $b;
    });
    call_user_func_array('by_name', [1]);
    preg_replace_callback('/x/', function ($match) {
        point('preg_replace_callback');
        return '';
    }, 'x');
    array_walk($numbers, function (&$value, $key) {
        if ($key === 0) {
            point('array_walk');
        }
    });
    (new ReflectionFunction('by_name'))->invoke(1);
    (new ReflectionMethod('App\Classes\Magic', '__invoke'))->invoke($magic, 1);
    iterator_apply(new ArrayIterator([1]), function () {
        point('iterator_apply');
        return true;
    });

    spl_autoload_register(function ($class) {
        point("autoload");
    });
    class_exists('Nowhere\Nothing');
    Nowhere\Nobody::class;
    try {
        Nowhere\Nobody::call();
    } catch (Error $error) {
        point('catch');
    } finally {
        point('finally');
    }

    set_error_handler(function ($number, $text) {
        point('error handler');
        return true;
    });
    trigger_error('x');
    $unknown = $nothing;
    restore_error_handler();

    ob_start(function ($output) {
        return '';
    });
    ob_end_clean();

    function raises()
    {
        $guard = new class {
            public function __destruct()
            {
                point('destructor while an exception unwinds');
            }
        };
        throws(
            1
        );
        return $guard;
    }

    function throws($x)
    {
        $local = new class {
            public function __destruct()
            {
                point('destructor in the function that throws');
            }
        };
        throw new RuntimeException(
            'x'
        );
    }

    try {
        raises();
    } catch (RuntimeException $exception) {
        point('caught from below');
    }

    function deep($n)
    {
        return $n === 0 ? point('deep recursion over many pages') : deep($n - 1);
    }
    deep(6000);

    set_exception_handler(function ($exception) {
        point('exception handler');
    });
    register_shutdown_function(function () {
        point('shutdown function');
    });
    throw new Exception('the last');
}
