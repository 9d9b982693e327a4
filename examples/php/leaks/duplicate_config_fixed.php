<?php

// The same, but what settings say is kept once each, and what a tenant does not change is shared by all.

declare(strict_types=1);

namespace Tenancy;

final class Settings
{
    /** @param array<string, string> $values */
    private function __construct(public readonly int $tenant, public readonly array $values)
    {
    }

    /** @var array<string, array<string, string>> */
    private static array $parsed = [];

    public static function parse(int $tenant, string $text): self
    {
        return new self($tenant, self::$parsed[md5($text)] ??= self::values($text));
    }

    /** @return array<string, string> */
    private static function values(string $text): array
    {
        $values = [];
        foreach (explode("\n", $text) as $line) {
            [$key, $value] = explode('=', $line, 2);
            $values[trim($key)] = trim($value);
        }
        return $values;
    }
}

/** What stands in the file of a tenant. */
function text(): string
{
    $lines = [];
    for ($setting = 0; $setting < 40; $setting++) {
        $lines[] = "mail.transport.option$setting = smtp://mail$setting.internal.example.com:2525/queue";
    }
    return implode("\n", $lines);
}

$tenants = [];
for ($tenant = 0; $tenant < 800; $tenant++) {
    $tenants[] = Settings::parse($tenant, text());
}
require __DIR__ . '/ready.inc';
