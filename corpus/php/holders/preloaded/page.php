<?php
Preloaded\Cache::fill();
$global = str_repeat('g', 1000);
echo 'done';
