<?php
// Exceeds its memory limit, and waits in what is executed at the end, when what the calls held may be gone.
class Held { public $text; public function __construct($text) { $this->text = $text; } }
function fails($left, ...$more) {
    $own = str_repeat("own $left ", 5);
    $held = new Held("held by $left");
    // Its table of variables and that of arguments by other names are blocks of the size of an object.
    if ($left === 15) return include __DIR__ . '/again.inc';
    if ($left > 0) {
        fails($left - 1, name: new Held("named by $left"));
        return;
    }
    while (true) $GLOBALS['all'][] = str_repeat($own, 100);
}
ini_set('display_errors', '0');
ini_set('memory_limit', '12M');
register_shutdown_function(function () {
    ini_set('memory_limit', '-1');
    // Some of it stands where something else stood.
    $later = [];
    for ($i = 0; $i < 100; $i++) $later[] = new Held(str_repeat("later $i ", 5));
    require __DIR__ . '/ready.inc';
});
fails(30);
