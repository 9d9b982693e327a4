<?php
// Values that only calls hold which do not go on as they are: of generators that wait, behind an exception, in `finally`.
function made($name) { return "made-" . $name . str_repeat("-", 20); }
class Ended {
    public function __destruct() { waits(); }
}
function waits() { require __DIR__ . '/ready.inc'; }
function sums($name) { $sum = [made($name)] + (yield 1); }
function joins() { echo made('text') . (yield 2); }
function delegates() { $sum = [made('delegated')] + (yield from sums('inner sum')); }
function takes($first, ...$more) { return $first; }
function throws($exception) { $ended = new Ended; throw $exception; }
function prepares() {
    takes(made('prepared'), name: made('named'), last: throws(new LogicException(made('second'))));
}
function returns() {
    try {
        return [made('returned')];
    } finally {
        takes(
            made('argument'),
            prepares()
        );
    }
}
function fails() {
    try {
        throw new RuntimeException(made('first'));
    } finally {
        returns();
    }
}
$generators = [sums('sum'), joins(), delegates()];
foreach ($generators as $generator) $generator->current();
fails();
