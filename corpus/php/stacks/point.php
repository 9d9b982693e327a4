<?php
// Prints the stack that PHP itself sees, the leaf first, and waits for a line on its input.
//
//     = CONSTRUCT
//     FUNCTION <tab> FILE <tab> LINE       (<internal> and -1 in functions that are part of PHP)
//     .

function point(string $construct)
{
    $trace = debug_backtrace(DEBUG_BACKTRACE_IGNORE_ARGS);
    $lines = ["= $construct", "fgets\t<internal>\t-1", point_frame($trace[0], __FILE__, 0)];
    foreach ($trace as $at => $call) {
        $caller = $trace[$at + 1] ?? null;
        if ($caller === null && !isset($call['file'])) {
            break; // Called by PHP itself, under no code.
        }
        $lines[] = point_frame($caller, $call['file'] ?? '<internal>', $call['line'] ?? -1);
    }
    $lines[] = '.';
    // The next line is the one that stands under the two frames of this function.
    $lines[2] = "point\t" . __FILE__ . "\t" . (__LINE__ + 2);
    fwrite(STDOUT, implode("\n", $lines) . "\n");
    fgets(STDIN);
}

function point_frame($call, $file, $line): string
{
    $name = $call['function'] ?? '<main>';
    if (in_array($name, ['include', 'include_once', 'require', 'require_once', 'eval'], true) && !isset($call['class'])) {
        $name = '<main>';
    }
    // PHP gives functions of its own the place of their caller where they only pass a call on.
    if (isset($call['class']) && point_is_internal($call['class'], $name)) {
        $file = '<internal>';
        $line = -1;
    }
    if (isset($call['class'])) {
        $name = explode("\0", $call['class'])[0] . '::' . $name;
    }
    return "$name\t$file\t$line";
}

function point_is_internal($class, $name): bool
{
    return "$class::$name" === 'Closure::__invoke'
        || method_exists($class, $name) && (new ReflectionMethod($class, $name))->isInternal();
}
