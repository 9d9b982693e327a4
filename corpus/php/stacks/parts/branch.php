<?php
return require __DIR__ . '/leaf.php';
