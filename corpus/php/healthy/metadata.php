<?php
// The metadata of an ORM, as read from its cache, and the entities of one request.
namespace Orm;

ini_set('memory_limit', '512M');

final class ClassMetadata
{
    public array $fieldMappings = [];
    public array $columnNames = [];
    public array $associationMappings = [];
    public array $identifier = ['id'];

    public function __construct(public string $name)
    {
    }
}

final class Entity
{
    public ?Entity $parent = null;

    public function __construct(public int $id, public string $name, public \DateTimeImmutable $created)
    {
    }
}

final class UnitOfWork
{
    public array $identityMap = [];
    public array $originalEntityData = [];
}

final class Factory
{
    public array $loaded = [];

    public function load(string $name): void
    {
        $metadata = new ClassMetadata($name);
        for ($field = 0; $field < 24; $field++) {
            $type = ['string', 'integer', 'boolean', 'datetime'][$field % 4];
            $metadata->fieldMappings["field$field"] = ['fieldName' => "field$field", 'type' => $type, 'length' => 255,
                'columnName' => "field_$field", 'nullable' => false, 'unique' => false, 'options' => []];
            $metadata->columnNames["field$field"] = "field_$field";
        }
        $metadata->associationMappings['parent'] = ['fieldName' => 'parent', 'targetEntity' => $name, 'type' => 2,
            'joinColumns' => [['name' => 'parent_id', 'referencedColumnName' => 'id']], 'cascade' => []];
        $this->loaded[$name] = unserialize(serialize($metadata));
    }
}

$factory = new Factory();
$unit = new UnitOfWork();
for ($number = 0; $number < 350; $number++) {
    $factory->load("App\\Entity\\Entity$number");
}
for ($id = 0; $id < 2_000; $id++) {
    $entity = new Entity($id, "entity $id", new \DateTimeImmutable('2024-01-01'));
    $entity->parent = $last ?? null;
    $unit->identityMap[Entity::class][$id] = $entity;
    $unit->originalEntityData[spl_object_id($entity)] = ['id' => $id, 'name' => $entity->name];
    if ($id % 10 === 0) {
        $last = $entity;
    }
}
require __DIR__ . '/../internals/ready.inc';
