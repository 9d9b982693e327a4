<?php
namespace Parts;

class Once
{
    public static function run()
    {
        \point('class of a file that is required once');
    }
}

Once::run();
