//! Exports, opened by other programs.

use std::collections::BTreeSet;
use std::fs;

use borehole_heap::retention::{Follow, Retention};
use borehole_heap::{
    AttributeValue, Edge, Graph, GraphBuilder, HeapGraph, HeapSink as _, LocationType, MemoryLocation,
    NodeId, NodeType, Strength, heapsnapshot, hprof, json,
};
use borehole_testkit::{Scratch, peers};
use proptest::prelude::*;
use serde_json::Value as Json;

use crate::graphs::{graph, small};
use crate::json::reli;

fn dumped(graph: &impl Graph) -> Vec<u8> {
    let mut out = Vec::new();
    hprof::write(graph, &mut out).unwrap();
    out
}

fn snapshot(graph: &impl Graph) -> Vec<u8> {
    let mut out = Vec::new();
    heapsnapshot::write(graph, &mut out).unwrap();
    out
}

/// VisualVM's facts about a heap dump, and about the objects with these ids.
fn visualvm(graph: &HeapGraph, ids: &[u64]) -> Option<Json> {
    let peer = peers::peer("visualvm")?;
    let scratch = Scratch::new();
    let file = scratch.write("heap.hprof", &dumped(graph));
    let mut arguments = vec![file.to_str().unwrap().to_owned()];
    arguments.extend(ids.iter().map(u64::to_string));
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    Some(serde_json::from_str(&peer.stdout(&arguments)).unwrap())
}

/// memlab's facts about a snapshot, and about the nodes with these names.
fn memlab(graph: &HeapGraph, names: &[&str]) -> Option<Json> {
    let peer = peers::peer("memlab")?;
    let scratch = Scratch::new();
    let file = scratch.write("heap.heapsnapshot", &snapshot(graph));
    let arguments: Vec<&str> = std::iter::once(file.to_str().unwrap()).chain(names.iter().copied()).collect();
    Some(serde_json::from_str(&peer.stdout(&arguments)).unwrap())
}

const fn id(node: u64) -> u64 {
    (node + 1) * 16
}

#[test]
fn visualvm_sees_objects_with_fields_strings_and_numbers() {
    let ids: Vec<u64> = (0..6).map(id).collect();
    let Some(seen) = visualvm(&small(), &ids) else { return };
    assert_eq!(seen["roots"], serde_json::json!([id(0)]));
    assert_eq!(seen["classes"]["Shop\\Order"], 1, "{seen}");
    let [_, object, name, number, array, elements] = seen["objects"].as_array().unwrap().as_slice() else {
        panic!("{seen}")
    };
    let fields = serde_json::json!({
        "#address": "28672", "#bytes": "40", "name": id(2), "id": id(3), "lines": id(4)
    });
    assert_eq!((&object["class"], &object["fields"]), (&Json::from("Shop\\Order"), &fields));
    assert_eq!(object["path"], serde_json::json!([id(1)]));
    assert_eq!(
        (&name["class"], &name["text"]),
        (&Json::from("java.lang.String"), &Json::from("caf\u{e9} \u{fffd}/"))
    );
    assert_eq!(
        (&number["class"], &number["fields"]["value"]),
        (&Json::from("java.lang.Long"), &Json::from("-7"))
    );
    assert_eq!(array["fields"]["array_elements"], id(5));
    assert_eq!(elements["fields"]["0"], id(1));
}

#[test]
fn visualvm_reads_what_reli_recorded() {
    let graph = json::read(&reli("m1_objects")).unwrap();
    let Some(seen) = visualvm(&graph, &[]) else { return };
    for (class, count) in
        [("Shop\\Product", 50), ("stdClass", 2), ("SplObjectStorage", 1), ("php.CallFrame", 3)]
    {
        assert_eq!(seen["classes"][class], count, "{class}: {}", seen["classes"]);
    }
    assert_eq!(seen["roots"].as_array().unwrap().len(), 8);
    // Each string has its characters.
    assert_eq!(seen["classes"]["char[]"], seen["classes"]["java.lang.String"]);
}

/// Empty names, names of arrays, equal names, too many names, and invalid numbers.
fn odd() -> HeapGraph {
    let mut builder = GraphBuilder::new();
    let tree = |builder: &mut GraphBuilder, parent, node_type, link: &[u8]| {
        let (child, link) = (builder.node(node_type), builder.string(link));
        builder.edge(Edge { parent, child, link, is_tree: true, strength: Strength::Strong });
        child
    };
    let value = builder.string(b"value");
    let root = tree(&mut builder, None, NodeType::GLOBAL_VARIABLES, b"globals");
    let null = tree(&mut builder, None, NodeType::SCALAR_VALUE, b"null");
    builder.attribute(null, value, AttributeValue::Null);
    for class in [&b""[..], b"[I", b"java/lang/Object", b"\xff\0class@anonymous", b"Plain", b"Plain"] {
        let object = tree(&mut builder, Some(root), NodeType::OBJECT, class);
        let class = Some(builder.string(class));
        let (refcount, type_info) = (Some(1), Some(8));
        let location = MemoryLocation {
            class,
            refcount,
            type_info,
            ..MemoryLocation::new(LocationType::OBJECT, 16, 40)
        };
        builder.location(object, &location);
        let properties = tree(&mut builder, Some(object), NodeType::OBJECT_PROPERTIES, b"object_properties");
        for number in [f64::NAN, f64::NEG_INFINITY, 0.5] {
            let child = tree(&mut builder, Some(properties), NodeType::SCALAR_VALUE, b"same");
            builder.attribute(child, value, AttributeValue::Float(number));
        }
        let link = builder.string(b"null");
        builder.edge(Edge {
            parent: Some(properties),
            child: null,
            link,
            is_tree: false,
            strength: Strength::Weak,
        });
    }
    let many = tree(&mut builder, Some(root), NodeType::ARRAY_ELEMENTS, b"many");
    for number in 0..100 {
        tree(&mut builder, Some(many), NodeType::STRING, format!("key{}", number * 7 % 60).as_bytes());
    }
    builder.finish().unwrap()
}

#[test]
fn visualvm_and_memlab_read_odd_heaps() {
    let graph = odd();
    let elements = graph.counts().nodes as u64 - 101;
    if let Some(seen) = visualvm(&graph, &[id(2), id(elements), id(elements) + 2, id(elements) + 3]) {
        assert_eq!(seen["classes"]["Plain"], 2, "{seen}");
        assert_eq!(seen["classes"]["php.object.[I"], 1, "{seen}");
        let fields = &seen["objects"][0]["fields"];
        assert_eq!((&fields["same"], &fields["null"]), (&Json::from(id(4)), &Json::Null), "{seen}");
        assert_eq!(seen["objects"][1]["class"], "php.ArrayElements");
        assert_eq!(seen["objects"][2]["items"].as_array().unwrap().len(), 100);
        assert_eq!(seen["objects"][3]["items"].as_array().unwrap().len(), 100);
    }
    if let Some(seen) = memlab(&graph, &["NaN"]) {
        assert_eq!(seen["nodes"], graph.counts().nodes + 1);
    }
}

#[test]
fn memlab_sees_names_sizes_and_holders() {
    let graph = small();
    let Some(seen) = memlab(&graph, &["Shop\\Order", "-7"]) else { return };
    assert_eq!((&seen["nodes"], &seen["edges"]), (&Json::from(7), &Json::from(7)), "{seen}");
    assert_eq!(seen["self_sizes"], 40 + 32 + 56 + 320 + 4 * 8);
    let object = &seen["found"][0];
    assert_eq!(
        (&object["type"], &object["id"], &object["self_size"]),
        (&Json::from("object"), &Json::from(5), &Json::from(48))
    );
    let references =
        serde_json::json!([["property", "name", 7], ["property", "id", 9], ["property", "lines", 11]]);
    assert_eq!(object["references"], references);
    // The object holds everything but the root and the frames.
    assert_eq!(object["retained_size"], 40 + 32 + 56 + 320 + 4 * 8);
    assert_eq!(seen["found"][1]["type"], "number");
}

#[test]
fn memlab_reads_what_reli_recorded() {
    let graph = json::read(&reli("m1_objects")).unwrap();
    let Some(seen) = memlab(&graph, &["Shop\\Product"]) else { return };
    assert_eq!(seen["nodes"], graph.counts().nodes + 1);
    assert_eq!(seen["edges"], graph.counts().edges);
    let products = seen["found"].as_array().unwrap();
    assert_eq!(products.iter().filter(|node| node["type"] == "object").count(), 50);
}

/// The node for a number of a snapshot; `None` for its own root.
fn node_of(number: &Json) -> Option<NodeId> {
    number.as_u64()?.checked_sub(3).map(|number| NodeId(u32::try_from(number / 2).unwrap()))
}

/// The references of a graph between nodes that represent all those that share their memory.
fn merged(graph: &HeapGraph, retention: &Retention) -> HeapGraph {
    let mut builder = GraphBuilder::new();
    let link = builder.string(b"holds");
    let count = u32::try_from(graph.counts().nodes).unwrap();
    for node in (0..count).map(NodeId) {
        assert_eq!(builder.node(graph.node_type(node)), node);
    }
    graph.each_reference(&mut |parent, _, child| {
        let [parent, child] =
            [parent, Some(child.node)].map(|node| node.map(|node| retention.representative(node)));
        let child = child.expect("a reference has a target");
        builder.edge(Edge { parent, child, link, is_tree: false, strength: Strength::Strong });
    });
    builder.finish().unwrap()
}

/// The bytes of each representing node, with shared bytes counted once.
fn shallow(graph: &HeapGraph, retention: &Retention) -> Vec<u64> {
    let mut bytes = vec![0; graph.counts().nodes];
    let mut seen = BTreeSet::new();
    for row in 0..graph.counts().locations {
        let (node, location) = (graph.location_node(row), graph.location(row));
        if seen.insert((location.address, location.location_type.number())) {
            let size = location.size + u64::from(location.bin_overhead);
            bytes[retention.representative(node).0 as usize] += size;
        }
    }
    bytes
}

/// For heaps of real programs. memlab has an algorithm of its own, and the sums are computed again from its output.
#[test]
fn retained_sizes_are_those_of_memlab_s_dominators() {
    for program in ["m1_objects", "m3_closures", "m5_mixed"] {
        let graph = json::read(&reli(program)).unwrap();
        let everything = Follow { weak: true, ..Follow::default() };
        let retention = Retention::of(&graph, everything);
        let Some(seen) = memlab(&merged(&graph, &retention), &[]) else { return };
        let dominators: Vec<_> = seen["dominators"].as_array().unwrap().iter().skip(1).map(node_of).collect();
        let count = u32::try_from(dominators.len()).unwrap();
        let nodes: Vec<NodeId> =
            (0..count).map(NodeId).filter(|&node| retention.representative(node) == node).collect();
        let shallow = shallow(&graph, &retention);
        let mut retained = vec![0; dominators.len()];
        for &node in &nodes {
            assert_eq!(retention.dominator(node), dominators[node.0 as usize], "{program}, {node:?}");
            let upwards = std::iter::successors(Some(node), |node| dominators[node.0 as usize]);
            upwards.for_each(|above| retained[above.0 as usize] += shallow[node.0 as usize]);
        }
        let wrong = nodes.iter().find(|node| retention.retained(**node) != retained[node.0 as usize]);
        assert_eq!(wrong, None, "{program}");
        assert!(nodes.len() > 1000, "{program}: {}", nodes.len());
    }
}

/// Readers of Java heaps treat every reference as strong, so the table of all objects would keep everything alive.
#[test]
fn weak_references_hold_nothing_in_java_s_heap() {
    // So many that no other number in the file is the object's.
    let others = 44_000_u32;
    let graph = |strength| {
        let mut builder = GraphBuilder::new();
        let store = builder.node(NodeType::OBJECTS_STORE);
        for _ in 1..others {
            let _ = builder.node(NodeType::ARRAY_HEADER);
        }
        let object = builder.node(NodeType::OBJECT);
        let [root, link, other] = ["objects_store", "1", "kept"].map(|name| builder.string(name.as_bytes()));
        let strong = Strength::Strong;
        builder.edge(Edge { parent: None, child: store, link: root, is_tree: true, strength: strong });
        builder.edge(Edge { parent: Some(store), child: object, link, is_tree: true, strength });
        builder.edge(Edge { parent: None, child: object, link: other, is_tree: false, strength });
        builder.finish().unwrap()
    };
    let mentions = |strength| {
        let object = id(others.into()).to_be_bytes();
        dumped(&graph(strength)).windows(8).filter(|part| **part == object).count()
    };
    // The object itself, its entry in the table, and its root.
    assert_eq!(mentions(Strength::Strong), 3);
    assert_eq!(mentions(Strength::Weak), 1);
}

#[test]
fn exports_do_not_change_by_chance() {
    let graph = json::read(&reli("m3_closures")).unwrap();
    assert!(dumped(&graph) == dumped(&graph) && snapshot(&graph) == snapshot(&graph));
    let scratch = Scratch::new();
    let file = scratch.write("heap.hprof", &dumped(&graph));
    assert!(fs::read(file).unwrap().starts_with(b"JAVA PROFILE 1.0.2\0"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn any_graph_can_be_exported(graph in graph()) {
        let text = String::from_utf8(snapshot(&graph)).unwrap();
        let value: Json = serde_json::from_str(&text).unwrap();
        let counts = graph.counts();
        prop_assert_eq!(value["nodes"].as_array().unwrap().len(), (counts.nodes + 1) * 7);
        prop_assert_eq!(value["edges"].as_array().unwrap().len(), counts.edges * 3);
        prop_assert!(!dumped(&graph).is_empty());
    }
}
