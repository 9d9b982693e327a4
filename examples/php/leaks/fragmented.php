<?php

// A batch keeps a little of each large document that it goes through. The documents are gone; but PHP gives memory back in
// chunks of 2 MiB, and there is a summary in nearly each.

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
}
$reader->close();
require __DIR__ . '/ready.inc';
