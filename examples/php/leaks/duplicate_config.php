<?php

// Each tenant's settings are read from a file of its own, and most say the same: every string of them is there once a tenant.

declare(strict_types=1);

namespace Tenancy;

final class Settings
{
    /** @param array<string, string> $values */
    private function __construct(public readonly int $tenant, public readonly array $values)
    {
    }

    public static function parse(int $tenant, string $text): self
    {
        $values = ['tenant' => "tenant number $tenant"];
        foreach (explode("\n", $text) as $line) {
            [$key, $value] = explode('=', $line, 2);
            $values[trim($key)] = trim($value);
        }
        return new self($tenant, $values);
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
