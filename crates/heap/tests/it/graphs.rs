//! Random graphs for tests, and their contents as plain data.

use borehole_heap::{
    AttributeValue, Edge, Graph, GraphBuilder, HeapGraph, HeapSink, LocationType, MemoryLocation, NodeId,
    NodeType, Region, Strength, StringId,
};
use proptest::prelude::*;

/// The contents of a graph, with all strings in place.
#[derive(Debug, PartialEq)]
pub(crate) struct Plain {
    nodes: Vec<PlainNode>,
    roots: Vec<PlainEdge>,
    summary: Vec<(Vec<u8>, Vec<u8>)>,
    created: String,
}

/// Type, class, string, region, numbers.
type PlainLocation = (Vec<u8>, Option<Vec<u8>>, Option<Vec<u8>>, Option<Vec<u8>>, String);

type PlainEdge = (u32, Vec<u8>, bool, Strength);

#[derive(Debug, PartialEq)]
struct PlainNode {
    node_type: Vec<u8>,
    canonical: Option<NodeId>,
    children: Vec<PlainEdge>,
    locations: Vec<PlainLocation>,
    attributes: Vec<(Vec<u8>, Vec<u8>, String)>,
}

pub(crate) fn plain(graph: &impl Graph) -> Plain {
    let text = |string| graph.string(string).to_vec();
    let nodes = (0..u32::try_from(graph.counts().nodes).unwrap()).map(|node| plain_node(graph, NodeId(node)));
    Plain {
        nodes: nodes.collect(),
        roots: edges(graph, None),
        summary: graph.summary().iter().map(|&(key, value)| (text(key), text(value))).collect(),
        created: graph.created().to_owned(),
    }
}

fn edges(graph: &impl Graph, parent: Option<NodeId>) -> Vec<PlainEdge> {
    let children = graph.children(parent).filter_map(|row| graph.child(row));
    children
        .map(|child| (child.node.0, graph.string(child.link).to_vec(), child.is_tree, child.strength))
        .collect()
}

fn plain_node(graph: &impl Graph, node: NodeId) -> PlainNode {
    let text = |string: StringId| graph.string(string).to_vec();
    let location = |row| {
        let found: MemoryLocation = graph.location(row);
        let numbers = (
            graph.location_node(row),
            found.address,
            found.size,
            found.bin_overhead,
            found.refcount,
            found.type_info,
        );
        (
            graph.location_type_name(found.location_type).to_vec(),
            found.class.map(text),
            found.string.map(text),
            found.region.map(|region| graph.region_name(region).to_vec()),
            format!("{numbers:?}"),
        )
    };
    let attribute = |row| {
        let found = graph.attribute(row);
        (text(found.key), text(found.value), format!("{:?}", found.kind))
    };
    PlainNode {
        node_type: graph.node_type_name(node).to_vec(),
        canonical: graph.canonical(node),
        children: edges(graph, Some(node)),
        locations: graph.locations(node).map(location).collect(),
        attributes: graph.attributes(node).map(attribute).collect(),
    }
}

/// One call of a sink.
#[derive(Clone, Debug)]
enum Step {
    Node {
        node_type: u16,
        parent: usize,
        link: Vec<u8>,
        strength: u8,
    },
    Reference {
        parent: usize,
        child: usize,
        link: Vec<u8>,
        strength: u8,
    },
    Location {
        node: usize,
        kind: u16,
        address: u64,
        size: u64,
        texts: (Option<Vec<u8>>, Option<Vec<u8>>),
        counts: (u32, u32),
        region: u16,
    },
    Attribute {
        node: usize,
        key: Vec<u8>,
        value: PlainValue,
    },
    Summary {
        key: String,
        value: String,
    },
}

#[derive(Clone, Debug)]
enum PlainValue {
    Null,
    Bool(bool),
    Integer(i64),
    Float(f64),
    Text(Vec<u8>),
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        "[a-z#\\\\/\"$]{0,8}".prop_map(String::into_bytes),
        "\\PC{0,4}".prop_map(String::into_bytes),
        proptest::collection::vec(any::<u8>(), 0..5),
    ]
}

fn value() -> impl Strategy<Value = PlainValue> {
    prop_oneof![
        Just(PlainValue::Null),
        any::<bool>().prop_map(PlainValue::Bool),
        any::<i64>().prop_map(PlainValue::Integer),
        any::<f64>().prop_map(PlainValue::Float),
        bytes().prop_map(PlainValue::Text),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let node = (0..45_u16, any::<usize>(), bytes(), 0..3_u8)
        .prop_map(|(node_type, parent, link, strength)| Step::Node { node_type, parent, link, strength });
    let reference = (any::<usize>(), any::<usize>(), bytes(), 0..3_u8)
        .prop_map(|(parent, child, link, strength)| Step::Reference { parent, child, link, strength });
    let texts = (proptest::option::of(bytes()), proptest::option::of(bytes()));
    let counts = (any::<u32>(), any::<u32>());
    // There are few addresses, so that some are shared.
    let location = (any::<usize>(), 0..30_u16, 0..12_u64, any::<u64>(), texts, counts, 0..6_u16).prop_map(
        |(node, kind, address, size, texts, counts, region)| Step::Location {
            node,
            kind,
            address,
            size,
            texts,
            counts,
            region,
        },
    );
    let key = prop_oneof![Just(b"#count".to_vec()), Just(b"value".to_vec()), bytes()];
    let attribute =
        (any::<usize>(), key, value()).prop_map(|(node, key, value)| Step::Attribute { node, key, value });
    let summary = ("[a-z_]{1,6}", "\\PC{0,6}").prop_map(|(key, value)| Step::Summary { key, value });
    prop_oneof![5 => node, 3 => reference, 4 => location, 3 => attribute, 1 => summary]
}

/// A random graph whose tree reaches every node.
pub(crate) fn graph() -> impl Strategy<Value = HeapGraph> {
    proptest::collection::vec(step(), 0..300).prop_map(|steps| built(&steps))
}

const STRENGTHS: [Strength; 3] = [Strength::Strong, Strength::Weak, Strength::Structural];

fn built(steps: &[Step]) -> HeapGraph {
    let mut builder = GraphBuilder::new();
    builder.set_created("2026-04-30T10:20:30Z");
    let mut count = 0;
    for step in steps {
        take(&mut builder, step, &mut count);
    }
    builder.finish().unwrap()
}

fn take(builder: &mut GraphBuilder, step: &Step, count: &mut usize) {
    let node = |number: usize, count: usize| NodeId(u32::try_from(number % count).unwrap());
    match step {
        Step::Node { node_type, parent, link, strength } => {
            let link = builder.string(link);
            let parent = (*count > 0 && parent % 7 != 0).then(|| node(*parent, *count));
            let number = builder.node_type(type_name("Node", *node_type).as_bytes());
            let child = builder.node(number);
            builder.edge(Edge {
                parent,
                child,
                link,
                is_tree: true,
                strength: STRENGTHS[usize::from(*strength)],
            });
            *count += 1;
        }
        Step::Reference { parent, child, link, strength } if *count > 0 => {
            let link = builder.string(link);
            let (parent, child) = (Some(node(*parent, *count)), node(*child, *count));
            builder.edge(Edge {
                parent,
                child,
                link,
                is_tree: false,
                strength: STRENGTHS[usize::from(*strength)],
            });
        }
        Step::Location { node: number, kind, address, size, texts, counts, region } if *count > 0 => {
            let is_counted = counts.1 % 2 == 1;
            let location = MemoryLocation {
                location_type: builder.location_type(type_name("Location", *kind).as_bytes()),
                address: *address,
                size: *size,
                bin_overhead: counts.0 % 100,
                class: texts.0.as_ref().map(|text| builder.string(text)),
                string: texts.1.as_ref().map(|text| builder.string(text)),
                refcount: is_counted.then_some(counts.0),
                type_info: is_counted.then_some(counts.1),
                region: (*region < 5).then(|| builder.region(type_name("Region", *region).as_bytes())),
            };
            builder.location(node(*number, *count), &location);
        }
        Step::Attribute { node: number, key, value } if *count > 0 => {
            let key = builder.string(key);
            let value = match value {
                PlainValue::Null => AttributeValue::Null,
                PlainValue::Bool(value) => AttributeValue::Bool(*value),
                PlainValue::Integer(value) => AttributeValue::Integer(*value),
                PlainValue::Float(value) => AttributeValue::Float(*value),
                PlainValue::Text(value) => AttributeValue::Text(value),
            };
            builder.attribute(node(*number, *count), key, value);
        }
        Step::Summary { key, value } => builder.summary(key, value),
        _ => {}
    }
}

/// A name that this version knows, or an unknown one.
fn type_name(list: &str, number: u16) -> String {
    let known = match list {
        "Node" => NodeType::NAMES,
        "Location" => LocationType::NAMES,
        _ => Region::NAMES,
    };
    known.get(usize::from(number)).map_or_else(|| format!("Newer{list}{number}"), |&name| name.to_owned())
}

/// A small heap: an object in a variable, with an array that refers to it again.
pub(crate) fn small() -> HeapGraph {
    let mut builder = GraphBuilder::new();
    builder.set_created("2026-04-30T10:20:30Z");
    builder.summary("php_version", "v82");
    builder.summary("memory_get_usage", "453232");
    let edge = |builder: &mut GraphBuilder, parent, child, link: &str, is_tree| {
        let link = builder.string(link.as_bytes());
        builder.edge(Edge { parent, child, link, is_tree, strength: Strength::Strong });
    };
    let frames = builder.node(NodeType::CALL_FRAMES);
    edge(&mut builder, None, frames, "call_frames", true);
    let object = builder.node(NodeType::OBJECT);
    edge(&mut builder, Some(frames), object, "order", true);
    let class = builder.string(b"Shop\\Order");
    builder.location(
        object,
        &MemoryLocation { class: Some(class), ..location(LocationType::OBJECT, 0x7000, 40) },
    );
    let name = builder.node(NodeType::STRING);
    edge(&mut builder, Some(object), name, "name", true);
    let text = builder.string(b"caf\xc3\xa9 \xff/");
    builder
        .location(name, &MemoryLocation { string: Some(text), ..location(LocationType::STRING, 0x7100, 32) });
    let number = builder.node(NodeType::SCALAR_VALUE);
    edge(&mut builder, Some(object), number, "id", true);
    let key = builder.string(b"value");
    builder.attribute(number, key, AttributeValue::Integer(-7));
    let array = builder.node(NodeType::ARRAY_HEADER);
    edge(&mut builder, Some(object), array, "lines", true);
    builder.location(array, &location(LocationType::ARRAY, 0x7200, 56));
    let elements = builder.node(NodeType::ARRAY_ELEMENTS);
    edge(&mut builder, Some(array), elements, "array_elements", true);
    let mut table = location(LocationType::ARRAY_TABLE, 0x7300, 320);
    (table.refcount, table.type_info) = (None, None);
    builder.location(elements, &table);
    let (count, packed) = (builder.string(b"#count"), builder.string(b"is_packed"));
    builder.attribute(elements, count, AttributeValue::Integer(1));
    builder.attribute(elements, packed, AttributeValue::Bool(true));
    edge(&mut builder, Some(elements), object, "0", false);
    builder.finish().unwrap()
}

fn location(location_type: LocationType, address: u64, size: u64) -> MemoryLocation {
    MemoryLocation {
        bin_overhead: 8,
        refcount: Some(2),
        type_info: Some(8),
        region: Some(Region::HEAP),
        ..MemoryLocation::new(location_type, address, size)
    }
}
