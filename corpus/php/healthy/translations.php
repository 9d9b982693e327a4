<?php
// Routes and translations as a cache file returns them: plain arrays.
ini_set('memory_limit', '256M');

final class Config
{
    public static array $routes = [];
    public static array $translations = [];
}

for ($number = 0; $number < 2_500; $number++) {
    Config::$routes["route_$number"] = ['path' => "/path/$number", 'controller' => "Controller$number@index",
        'middleware' => ['web', 'auth', "can:see-$number"], 'where' => ['id' => '[0-9]+']];
}
foreach (['en', 'de', 'fr', 'es', 'it', 'pl'] as $locale) {
    for ($number = 0; $number < 6_000; $number++) {
        Config::$translations[$locale]['messages']["key.$number"] = "Text $number in the language $locale, a sentence.";
    }
}
require __DIR__ . '/../internals/ready.inc';
