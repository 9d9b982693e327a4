//! Exports, opened by the readers of others.

use std::fs;

use borehole_heap::{Graph, HeapGraph, heapsnapshot, hprof, json};
use borehole_testkit::{Scratch, peers};
use proptest::prelude::*;
use serde_json::Value;

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

/// What VisualVM says of a heap dump, and of the objects with these ids.
fn visualvm(graph: &HeapGraph, ids: &[u64]) -> Option<Value> {
    let peer = peers::peer("visualvm")?;
    let scratch = Scratch::new();
    let file = scratch.write("heap.hprof", &dumped(graph));
    let mut arguments = vec![file.to_str().unwrap().to_owned()];
    arguments.extend(ids.iter().map(u64::to_string));
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    Some(serde_json::from_str(&peer.stdout(&arguments)).unwrap())
}

/// What memlab says of a snapshot, and of the nodes with these names.
fn memlab(graph: &HeapGraph, names: &[&str]) -> Option<Value> {
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
    assert_eq!((&object["class"], &object["fields"]), (&Value::from("Shop\\Order"), &fields));
    assert_eq!(object["path"], serde_json::json!([id(1)]));
    assert_eq!(
        (&name["class"], &name["text"]),
        (&Value::from("java.lang.String"), &Value::from("caf\u{e9} \u{fffd}/"))
    );
    assert_eq!(
        (&number["class"], &number["fields"]["value"]),
        (&Value::from("java.lang.Long"), &Value::from("-7"))
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

#[test]
fn memlab_sees_names_sizes_and_who_holds_what() {
    let graph = small();
    let Some(seen) = memlab(&graph, &["Shop\\Order", "-7"]) else { return };
    assert_eq!((&seen["nodes"], &seen["edges"]), (&Value::from(7), &Value::from(7)), "{seen}");
    assert_eq!(seen["self_sizes"], 40 + 32 + 56 + 320 + 4 * 8);
    let object = &seen["found"][0];
    assert_eq!(
        (&object["type"], &object["id"], &object["self_size"]),
        (&Value::from("object"), &Value::from(5), &Value::from(48))
    );
    let references =
        serde_json::json!([["property", "name", 7], ["property", "id", 9], ["property", "lines", 11]]);
    assert_eq!(object["references"], references);
    // All but the root and the frames is held by the object.
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
        let value: Value = serde_json::from_str(&text).unwrap();
        let counts = graph.counts();
        prop_assert_eq!(value["nodes"].as_array().unwrap().len(), (counts.nodes + 1) * 7);
        prop_assert_eq!(value["edges"].as_array().unwrap().len(), counts.edges * 3);
        prop_assert!(!dumped(&graph).is_empty());
    }
}
