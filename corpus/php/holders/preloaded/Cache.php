<?php
namespace Preloaded;
class Cache
{
    public static $rows = ['first'];
    public static function fill()
    {
        static $calls = [];
        $calls[] = str_repeat('c', 1000);
        self::$rows = array_fill(0, 100000, 'row');
    }
}
