<?php
opcache_compile_file(__DIR__ . '/Cache.php');
