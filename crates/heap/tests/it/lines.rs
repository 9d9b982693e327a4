//! Graphs as JSON Lines.

use borehole_heap::{HeapGraph, json, lines};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::graphs::{graph, small};
use crate::json::reli;

fn written(graph: &HeapGraph) -> Vec<Value> {
    let mut out = Vec::new();
    lines::write(graph, &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn of_type<'a>(lines: &'a [Value], line_type: &'a str) -> impl Iterator<Item = &'a Value> {
    lines.iter().filter(move |line| line["type"] == line_type)
}

#[test]
fn each_thing_has_a_line() {
    let lines = written(&small());
    let first = json!({"type": "heap", "schema_version": 1, "created": "2026-04-30T10:20:30Z", "nodes": 6, "edges": 7, "locations": 4, "attributes": 3});
    assert_eq!(lines[0], first);
    assert_eq!(lines[1], json!({"type": "summary", "key": "php_version", "value": "v82"}));
    assert_eq!(
        lines[3],
        json!({"type": "edge", "child": 0, "link": "call_frames", "is_tree": true, "strength": "strong"})
    );
    assert_eq!(lines[4], json!({"type": "node", "id": 0, "node_type": "CallFramesContext"}));
    let object = json!({"type": "location", "node": 1, "location_type": "ZendObjectMemoryLocation", "address": 0x7000, "size": 40,
        "bin_overhead": 8, "refcount": 2, "type_info": 8, "class_name": "Shop\\Order", "region": "zend_mm_heap"});
    assert_eq!(of_type(&lines, "location").next(), Some(&object));
    let string = of_type(&lines, "location").nth(1).unwrap();
    assert_eq!(string["string_value"], json!({"hex": "636166c3a920ff2f"}));
    let values: Vec<&Value> = of_type(&lines, "attribute").map(|line| &line["value"]).collect();
    assert_eq!(values, [&json!(-7), &json!(1), &json!(true)]);
    assert_eq!(
        of_type(&lines, "edge").last(),
        Some(
            &json!({"type": "edge", "parent": 5, "child": 1, "link": "0", "is_tree": false, "strength": "strong"})
        )
    );
    assert_eq!(lines.last(), Some(&json!({"type": "end", "nodes": 6})));
}

#[test]
fn graphs_of_reli_have_a_line_for_each_part() {
    let graph = json::read(&reli("m4_generators")).unwrap();
    let lines = written(&graph);
    let first = &lines[0];
    for (key, line_type) in
        [("nodes", "node"), ("edges", "edge"), ("locations", "location"), ("attributes", "attribute")]
    {
        assert_eq!(first[key], of_type(&lines, line_type).count(), "{key}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn any_graph_has_lines(graph in graph()) {
        let lines = written(&graph);
        prop_assert_eq!(&lines[0]["edges"], of_type(&lines, "edge").count());
    }
}
