<?php
// What a framework has in memory once it is up: a container of services, routes, translations and a class map.
namespace Framework;

ini_set('memory_limit', '512M');

class Service
{
    public array $options;

    public function __construct(public string $id, public array $arguments, public ?Container $container)
    {
        $this->options = ['debug' => false, 'charset' => 'UTF-8', 'timeout' => strlen($id)];
    }
}

final class Mailer extends Service
{
}

final class Router
{
    public array $routes = [];
    public array $compiled = [];

    public function __construct(int $count)
    {
        for ($number = 0; $number < $count; $number++) {
            $path = "/section{$number}/{id}/{slug}.{_format}";
            $this->routes["app_route_$number"] = [
                'path' => $path,
                'defaults' => ['_controller' => "App\\Controller\\Controller{$number}::show", '_format' => 'html'],
                'requirements' => ['id' => '\d+', 'slug' => '[^/]++', '_format' => 'html|json'],
                'methods' => ['GET', 'HEAD'],
                'schemes' => [],
            ];
            $this->compiled["app_route_$number"] = [
                ['id', 'slug', '_format'],
                "{^/section{$number}/(?P<id>\\d+)/(?P<slug>[^/]++)\\.(?P<_format>html|json)$}sDu",
                [['variable', '.', 'html|json', '_format'], ['variable', '/', '[^/]++', 'slug'],
                 ['variable', '/', '\d+', 'id'], ['text', "/section{$number}"]],
            ];
        }
    }
}

final class Catalogue
{
    public array $messages = [];
    public ?Catalogue $fallback = null;

    public function __construct(string $locale, int $count)
    {
        for ($number = 0; $number < $count; $number++) {
            $domain = ['messages', 'validators', 'security'][$number % 3];
            $this->messages[$domain]["section.page$number.label"] = "In $locale, the text of the label of page $number";
        }
    }
}

final class Translator
{
    public array $catalogues = [];

    public function __construct(array $locales, int $count)
    {
        foreach ($locales as $locale) {
            $this->catalogues[$locale] = new Catalogue($locale, intdiv($count, count($locales)));
        }
    }
}

final class ClassLoader
{
    public array $classMap = [];

    public function __construct(int $count)
    {
        for ($number = 0; $number < $count; $number++) {
            $this->classMap["Vendor\\Package\\Part{$number}\\Type$number"] =
                "/srv/app/vendor/package/part$number/src/Type$number.php";
        }
    }
}

final class Container
{
    public array $services = [];
    public array $factories = [];
    public array $parameters = [];

    public function boot(): void
    {
        for ($number = 0; $number < 400; $number++) {
            $id = "app.service.$number";
            $this->factories[$id] = fn () => new Service($id, [$number], $this);
            $this->services[$id] = $number % 9 ? ($this->factories[$id])() : new Mailer($id, [$number], $this);
            $this->parameters["$id.class"] = "App\\Service\\Service$number";
        }
        $this->services['router'] = new Router(2_500);
        $this->services['translator'] = new Translator(['en', 'de', 'fr'], 18_000);
    }
}

final class Kernel
{
    private Container $container;

    public function __construct(private ClassLoader $loader)
    {
        $this->container = new Container();
        $this->container->boot();
    }
}

$kernel = new Kernel(new ClassLoader(9_000));
require __DIR__ . '/../internals/ready.inc';
