<?php
// Three closures of one class: one takes nine times as long as another, and the third only calls them.

class Pipeline
{
    public function run()
    {
        $slow = function ($value, $next) {
            spin(0.009);
            return $next($value);
        };
        $fast = function ($value, $next) {
            spin(0.001);
            return $next($value);
        };
        $last = function ($value) {
            return $value;
        };
        return $this->carry($this->carry($last, $fast), $slow)(1);
    }

    private function carry($next, $pipe)
    {
        return function ($value) use ($next, $pipe) {
            return $pipe($value, $next);
        };
    }
}

function spin($seconds)
{
    $end = microtime(true) + $seconds;
    while (microtime(true) < $end) {
    }
}

$end = microtime(true) + $argv[1];
while (microtime(true) < $end) {
    (new Pipeline())->run();
}
