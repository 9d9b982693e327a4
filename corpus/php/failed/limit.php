<?php
// Exceeds its memory limit at a depth that it knows, and waits in what is executed at the end.
final class Hoard
{
    public $depth = 0;
    private $held = [];

    public function eat(int $left)
    {
        $this->depth++;
        $mine = "call " . $this->depth;
        if ($left > 0) {
            $this->eat($left - 1);
            $this->depth--;
            return;
        }
        while (true) {
            $this->held[] = str_repeat($mine, 100);
        }
    }
}

function before(Hoard $hoard, int $left)
{
    // Deeper calls that have returned leave their frames behind.
    $hoard->depth = -100;
    try {
        deeper(300);
    } catch (Exception $thrown) {
    }
    $hoard->depth = 0;
    near($hoard, $left, 10);
}

// Small frames, of which those are overwritten that stand where later calls do.
function near(Hoard $hoard, int $left, int $calls)
{
    if ($calls === 0) {
        $hoard->eat($left);
    } else {
        near($hoard, $left, $calls - 1);
    }
}

function deeper(int $left)
{
    if ($left === 0) {
        throw new Exception;
    }
    deeper($left - 1);
}

ini_set('display_errors', '0');
$hoard = new Hoard;
register_shutdown_function(function () use ($hoard) {
    ini_set('memory_limit', '-1');
    $error = error_get_last();
    echo implode("\t", [$error['file'], $error['line'], $hoard->depth]), "\n";
    // Waits in a call that others were made for, as `docs/heap.md` has it.
    exec(sprintf('read -r line # %d %s %d', getmypid(), escapeshellarg($error['file']), $error['line']));
    echo "done\n";
});
before($hoard, (int)($argv[1] ?? 5));
