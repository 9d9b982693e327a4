<?php

// A web shop that serves made-up requests, one after the other: something to look at with `borehole record`.
//
//   php shop.php [SECONDS]
//
// It has what real programs have: namespaces, closures, generators, a cache, templates, and one query that is slower
// than anybody thinks.

declare(strict_types=1);

namespace Shop\Database {
    final class Table
    {
        /** @var list<array<string, int|string>> */
        private array $rows = [];

        public function __construct(public readonly string $name)
        {
        }

        /** @param array<string, int|string> $row */
        public function insert(array $row): void
        {
            $this->rows[] = $row;
        }

        /** @return \Generator<int, array<string, int|string>> */
        public function scan(): \Generator
        {
            foreach ($this->rows as $row) {
                yield $row;
            }
        }
    }

    final class Query
    {
        /** @var list<\Closure> */
        private array $conditions = [];

        public function __construct(private readonly Table $table)
        {
        }

        public function where(string $column, int|string $value): self
        {
            $this->conditions[] = static fn (array $row): bool => $row[$column] === $value;

            return $this;
        }

        /** @return \Generator<int, array<string, int|string>> */
        public function rows(): \Generator
        {
            foreach ($this->table->scan() as $row) {
                if ($this->matches($row)) {
                    yield $row;
                }
            }
        }

        /** @param array<string, int|string> $row */
        private function matches(array $row): bool
        {
            foreach ($this->conditions as $condition) {
                if (!$condition($row)) {
                    return false;
                }
            }

            return true;
        }
    }

    final class Connection
    {
        /** @var array<string, Table> */
        private array $tables = [];

        public function table(string $name): Table
        {
            return $this->tables[$name] ??= new Table($name);
        }

        public function query(string $table): Query
        {
            return new Query($this->table($table));
        }
    }
}

namespace Shop\Catalog {
    use Shop\Database\Connection;

    final class Products
    {
        /** @var array<int, array<string, int|string>> */
        private array $cache = [];

        public function __construct(private readonly Connection $connection)
        {
        }

        /** @return array<string, int|string> */
        public function find(int $id): array
        {
            return $this->cache[$id] ??= $this->load($id);
        }

        /** @return array<string, int|string> */
        private function load(int $id): array
        {
            foreach ($this->connection->query('products')->where('id', $id)->rows() as $row) {
                return $row;
            }
            throw new \OutOfBoundsException("no product $id");
        }

        /** @return list<array<string, int|string>> */
        public function related(int $id): array
        {
            $category = $this->find($id)['category'];
            // The slow one: the whole table for every product that is shown.
            $rows = iterator_to_array($this->connection->query('products')->where('category', $category)->rows(), false);
            usort($rows, fn (array $one, array $other): int => $other['sold'] <=> $one['sold']);

            return array_slice($rows, 0, 4);
        }
    }
}

namespace Shop\View {
    final class Template
    {
        public function __construct(private readonly string $text)
        {
        }

        /** @param array<string, int|string> $values */
        public function render(array $values): string
        {
            return preg_replace_callback(
                '/{{(\w+)}}/',
                fn (array $match): string => htmlspecialchars((string) ($values[$match[1]] ?? '')),
                $this->text,
            );
        }
    }
}

namespace Shop\Http {
    use Shop\Catalog\Products;
    use Shop\View\Template;

    final class ProductPage
    {
        private Template $page;
        private Template $teaser;

        public function __construct(private readonly Products $products)
        {
            $this->page = new Template('<h1>{{name}}</h1><p>{{price}} EUR</p>');
            $this->teaser = new Template('<a href="/product/{{id}}">{{name}}</a>');
        }

        public function handle(int $id): string
        {
            $html = $this->page->render($this->products->find($id));
            foreach ($this->products->related($id) as $product) {
                $html .= $this->teaser->render($product);
            }

            return $html;
        }
    }

    final class CartPage
    {
        public function __construct(private readonly Products $products)
        {
        }

        /** @param list<int> $ids */
        public function handle(array $ids): string
        {
            $lines = array_map($this->line(...), $ids);
            $total = array_reduce($lines, fn (int $sum, array $line): int => $sum + $line['price'], 0);

            return json_encode(['lines' => $lines, 'total' => $total], JSON_THROW_ON_ERROR);
        }

        /** @return array{name: string, price: int} */
        private function line(int $id): array
        {
            ['name' => $name, 'price' => $price] = $this->products->find($id);

            return ['name' => $name, 'price' => $price];
        }
    }

    final class Kernel
    {
        /** @var list<\Closure> */
        private array $middleware = [];

        public function with(\Closure $middleware): self
        {
            $this->middleware[] = $middleware;

            return $this;
        }

        public function run(\Closure $action): string
        {
            $layers = array_reverse($this->middleware);
            $next = $action;
            foreach ($layers as $layer) {
                $next = fn (): string => $layer($next);
            }

            return $next();
        }
    }
}

namespace {
    use Shop\Catalog\Products;
    use Shop\Database\Connection;
    use Shop\Http\CartPage;
    use Shop\Http\Kernel;
    use Shop\Http\ProductPage;

    const PRODUCTS = 400;

    function fill(Connection $connection): void
    {
        $products = $connection->table('products');
        for ($id = 0; $id < PRODUCTS; $id++) {
            $products->insert([
                'id' => $id,
                'name' => "Product <$id>",
                'category' => $id % 8,
                'price' => 3 + $id * 7 % 90,
                'sold' => crc32((string) $id) % 1000,
            ]);
        }
    }

    $connection = new Connection();
    fill($connection);
    $products = new Products($connection);
    [$product, $cart] = [new ProductPage($products), new CartPage($products)];
    $kernel = (new Kernel())
        ->with(fn (Closure $next): string => md5($answer = $next()) . $answer)
        ->with(fn (Closure $next): string => gzencode($next(), 1));

    mt_srand(7);
    [$served, $end] = [0, hrtime(true) + (int) ((float) ($argv[1] ?? 10) * 1e9)];
    while (hrtime(true) < $end) {
        $id = mt_rand(0, PRODUCTS - 1);
        $kernel->run($served % 3 > 0
            ? fn (): string => $product->handle($id)
            : fn (): string => $cart->handle([$id, ($id + 1) % PRODUCTS, ($id + 2) % PRODUCTS]));
        $served++;
    }
    fprintf(STDERR, "%d requests served\n", $served);
}
