<?php
// Opens 1,500 handles of the kind that is asked for, says how much memory that frees, and does it again to be looked at.
function handles($kind, $file)
{
    $handles = [];
    for ($i = 0; $i < 1500; $i++) {
        if ($kind === 'file') {
            $handle = fopen($file, 'r');
            fgets($handle);
        } else {
            $handle = fopen("php://$kind", 'w+');
            fwrite($handle, str_repeat('s', 5000));
        }
        $handles[] = $handle;
    }
    return $handles;
}
function freed($kind, $file)
{
    $handles = handles($kind, $file);
    $before = memory_get_usage();
    $handles = null;
    return $before - memory_get_usage();
}
$kind = getenv('KIND');
$file = __FILE__;
fclose(fopen('php://memory', 'w+'));
$freed = freed($kind, $file);
$handles = handles($kind, $file);
require __DIR__ . '/wait.inc';
