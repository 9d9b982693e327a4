<?php
// A cache of at most 40,000 entries that is full, and far below the limit.
namespace Cache;

ini_set('memory_limit', '512M');

final class Entry
{
    public function __construct(public string $key, public string $value, public int $expires)
    {
    }
}

final class LruCache
{
    private const MOST = 40_000;
    private array $entries = [];

    public function get(int $number): Entry
    {
        $key = "user.$number.profile";
        $entry = $this->entries[$key] ?? new Entry($key, str_repeat("profile $number ", 60), 1_700_000_000 + $number);
        unset($this->entries[$key]);
        $this->entries[$key] = $entry;
        if (count($this->entries) > self::MOST) {
            unset($this->entries[array_key_first($this->entries)]);
        }
        return $entry;
    }
}

final class App
{
    public LruCache $cache;
}

$app = new App();
$app->cache = new LruCache();
for ($number = 0; $number < 41_000; $number++) {
    $app->cache->get($number);
}
require __DIR__ . '/../internals/ready.inc';
