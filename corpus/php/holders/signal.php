<?php
// A handler of a signal, which only a variable of the module for processes refers to.
function handler()
{
    $kept = str_repeat('k', 3000000);
    return function () use ($kept) {};
}
pcntl_signal(SIGUSR2, handler());
require __DIR__ . '/wait.inc';
