<?php
\App\Shop\within_a_fiber(
    $GLOBALS['callback']
);
