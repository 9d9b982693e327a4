<?php
// What came with PHP 8.4: lazy objects, property hooks, asymmetric visibility.
function made(string $name): string { return "made-" . $name . str_repeat("-", 20); }
class Service { public string $name = 'service'; public array $list = []; public function __construct(public readonly string $made) {} }
$class = new ReflectionClass(Service::class);
$captured = made('captured by initializer');
$ghost = $class->newLazyGhost(function (Service $object) use ($captured) { $object->__construct(made('never')); });
$proxy = $class->newLazyProxy(function (Service $object) use ($captured) { return new Service(made('never')); });
$resolved = $class->newLazyProxy(fn(Service $object) => new Service(made('resolved proxy')));
$resolved->made;
$initialized = $class->newLazyGhost(fn(Service $object) => $object->__construct(made('initialized ghost')));
$initialized->made;
unset($captured);
class Hooked {
    private string $backing = 'b';
    public string $hooked { get => $this->backing; set(string $value) { $this->backing = strtolower($value); } }
    public private(set) string $asymmetric = 'a';
    public string $virtual { get => 'virtual' . $this->backing; }
}
$hooked = new Hooked;
$hooked->hooked = strtoupper(made('hooked'));
require __DIR__ . '/ready.inc';
