<?php

// The same, but a document is let go of before the next is read, and PHP is asked for what it keeps for later.

declare(strict_types=1);

namespace Batch;

final class Summary
{
    public function __construct(public readonly string $text)
    {
    }
}

final class Reader
{
    /** @var list<string> */
    private array $pages = [];

    /** A document, and what is kept of it: page by page, so that both are made by turns. */
    public function read(int $number): Summary
    {
        for ($page = 0; $page < 150; $page++) {
            $this->pages[] = str_repeat("page $page of document $number ", 450);
        }
        return new Summary(str_repeat("summary of $number ", 1_000));
    }

    public function close(): void
    {
        $this->pages = [];
    }
}

$reader = new Reader();
$summaries = [];
for ($document = 0; $document < 24; $document++) {
    $summaries[] = $reader->read($document);
    $reader->close();
}
gc_mem_caches();
require __DIR__ . '/ready.inc';
