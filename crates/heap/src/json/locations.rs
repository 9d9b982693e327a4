//! The facts in a location of JSON, which depend on its type, and the inference of its type, which JSON does not state.

use crate::graph::{Graph, NodeAttribute, attributes, child, locations};
use crate::names::{LocationType, NodeType};
use crate::sink::{MemoryLocation, NodeId};

/// Stated of every table of an array in JSON; a graph states it only of packed ones.
pub(super) const PACKED: &str = "is_packed";

/// The facts of a node that JSON puts into its locations of these types. Source: `corpus/php/reli-json`.
const FACTS: &[(LocationType, &[&str])] = &[
    (LocationType::ARRAY_TABLE, &[PACKED]),
    (LocationType::OP_ARRAY_BODY, &["function_name"]),
    (LocationType::OP_ARRAY_HEADER, &["function_name", "file", "line_start", "line_end"]),
];

/// The locations that reli counts but does not list.
const HIDDEN: &[LocationType] = &[LocationType::CALL_FRAME_HEADER, LocationType::CALL_FRAME_VARIABLE_TABLE];

/// The location type of each node type, for locations without a telling key.
const TYPES: &[(NodeType, LocationType)] = &[
    (NodeType::ARG_INFOS, LocationType::ARG_INFOS),
    (NodeType::ARRAY_HEADER, LocationType::ARRAY),
    (NodeType::CLASS_CONSTANT_INFO, LocationType::CLASS_CONSTANT),
    (NodeType::CLASS_ENTRY, LocationType::CLASS_ENTRY),
    (NodeType::CLASS_STATIC_PROPERTIES, LocationType::STATIC_MEMBERS_TABLE),
    (NodeType::DEFAULT_PROPERTIES_TABLE, LocationType::DEFAULT_PROPERTIES_TABLE),
    (NodeType::DEFAULT_STATIC_PROPERTIES, LocationType::DEFAULT_STATIC_MEMBERS_TABLE),
    (NodeType::DEFINED_FUNCTIONS, LocationType::ARRAY),
    (NodeType::DYNAMIC_FUNC_DEFS, LocationType::DYNAMIC_FUNC_DEFS_TABLE),
    (NodeType::GLOBAL_CONSTANT, LocationType::CONSTANT),
    (NodeType::LOCAL_VARIABLE_NAME_TABLE, LocationType::LOCAL_VARIABLE_NAME_TABLE),
    (NodeType::OBJECT_HANDLERS, LocationType::OBJECT_HANDLERS),
    (NodeType::OBJECTS_STORE, LocationType::OBJECTS_STORE),
    (NodeType::PHP_REFERENCE, LocationType::REFERENCE),
    (NodeType::PROPERTY_INFO, LocationType::PROPERTY_INFO),
    (NodeType::RESOURCE, LocationType::RESOURCE),
    (NodeType::RUNTIME_CACHE, LocationType::RUNTIME_CACHE),
];

/// The keys that determine the type of a location, the most reliable first.
const SIGNS: &[(&str, LocationType)] = &[
    ("used_location", LocationType::ARRAY_TABLE_OVERHEAD),
    ("file", LocationType::OP_ARRAY_HEADER),
    ("line_start", LocationType::OP_ARRAY_HEADER),
    ("line_end", LocationType::OP_ARRAY_HEADER),
    ("function_name", LocationType::OP_ARRAY_BODY),
    (PACKED, LocationType::ARRAY_TABLE),
    ("class_name", LocationType::OBJECT),
    ("value", LocationType::STRING),
];

/// The type of a location with these keys, of a node of this type; `None` if it is unknown.
pub(super) fn type_of(keys: &[String], node_type: NodeType) -> Option<LocationType> {
    let sign = SIGNS.iter().find(|(sign, _)| keys.iter().any(|key| key == sign));
    let by_node = TYPES.iter().find(|(known, _)| *known == node_type);
    sign.map(|&(_, found)| found).or(by_node.map(|&(_, found)| found))
}

/// Whether JSON lists locations of this type.
pub(super) fn is_shown(location_type: LocationType) -> bool {
    !HIDDEN.contains(&location_type)
}

/// The facts in a location of this type.
pub(super) fn facts(location_type: LocationType) -> &'static [&'static str] {
    FACTS.iter().find(|(known, _)| *known == location_type).map_or(&[], |(_, facts)| facts)
}

/// The fact of `node` called `key`.
pub(super) fn fact(graph: &impl Graph, node: NodeId, key: &str) -> Option<NodeAttribute> {
    let mut attributes = attributes(graph, node);
    attributes.find(|found| graph.string(found.key) == key.as_bytes())
}

/// The table whose unused part an overhead node is: that of the elements beside it.
pub(super) fn used_table(graph: &impl Graph, parent: NodeId) -> Option<(NodeId, MemoryLocation)> {
    let elements = child(graph, parent, b"array_elements")?;
    let mut locations = locations(graph, elements);
    Some((elements, locations.find(|location| location.location_type == LocationType::ARRAY_TABLE)?))
}
