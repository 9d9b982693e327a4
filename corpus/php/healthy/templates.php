<?php
// Compiled templates that stay in memory, and the tree of the last one.
namespace Template;

ini_set('memory_limit', '512M');

final class Node
{
    public array $children = [];

    public function __construct(public string $kind, public int $line, public ?string $text = null)
    {
    }
}

final class Environment
{
    public static array $compiled = [];
    public array $loaded = [];
    public ?Node $tree = null;

    public function render(string $name): string
    {
        $code = self::$compiled[$name] ??= "<?php // $name\n" . str_repeat("echo \$context['$name'];\n", 250);
        $this->loaded[$name] ??= fn (array $context): string => $name . count($context) . strlen($code);
        return ($this->loaded[$name])([]);
    }
}

$environment = new Environment();
for ($number = 0; $number < 900; $number++) {
    $environment->render("page/section$number.html.twig");
}
$environment->tree = new Node('module', 0);
for ($line = 1; $line < 3_000; $line++) {
    $node = new Node(['text', 'print', 'if', 'for'][$line % 4], $line, $line % 4 ? null : "text of line $line");
    $node->children[] = new Node('expression', $line);
    $environment->tree->children[] = $node;
}
require __DIR__ . '/../internals/ready.inc';
