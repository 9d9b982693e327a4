<?php
// Loads the files that programs of several modes use, before the first request.
opcache_compile_file(__DIR__ . '/classes.php');
opcache_compile_file(__DIR__ . '/../stacks/parts/preloaded.php');
