//! reli's JSON: its own files, read and written again.

use std::fs;
use std::io::Read as _;

use borehole_heap::json::{self, JsonLayout};
use borehole_heap::{
    Edge, Graph, GraphBuilder, HeapGraph, HeapSink as _, LocationType, MemoryLocation, NodeId, NodeType,
    Strength,
};
use proptest::prelude::*;

use crate::graphs::{graph, plain, small};

const FILES: [&str; 4] = ["m1_objects", "m3_closures", "m4_generators", "m5_mixed"];

pub(crate) fn reli(name: &str) -> Vec<u8> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../corpus/php/reli-json");
    let packed = fs::read(format!("{folder}/{name}.json.gz")).unwrap();
    let mut json = Vec::new();
    flate2::read::MultiGzDecoder::new(packed.as_slice()).read_to_end(&mut json).unwrap();
    json
}

fn written(graph: &impl Graph, layout: JsonLayout) -> String {
    let mut out = Vec::new();
    json::write(graph, layout, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn first_difference(left: &str, right: &str) -> Option<(String, String)> {
    let at = left.bytes().zip(right.bytes()).position(|(left, right)| left != right);
    let at = at.or((left.len() != right.len()).then(|| left.len().min(right.len())))?;
    let around = |text: &str| {
        String::from_utf8_lossy(&text.as_bytes()[at.saturating_sub(200)..(at + 200).min(text.len())])
            .into_owned()
    };
    Some((around(left), around(right)))
}

#[test]
fn files_of_reli_are_written_as_they_were_to_the_byte() {
    for name in FILES {
        let original = String::from_utf8(reli(name)).unwrap();
        let graph = json::read(original.as_bytes()).unwrap();
        assert!(graph.counts().nodes > 20_000, "{name}: {:?}", graph.counts());
        assert_eq!(
            first_difference(&written(&graph, JsonLayout::Compact), original.trim_end()),
            None,
            "{name}"
        );
    }
}

#[test]
fn files_of_reli_survive_rmem() {
    let graph = json::read(&reli("m1_objects")).unwrap();
    let mut file = Vec::new();
    borehole_heap::rmem::write(&graph, &mut file).unwrap();
    let view = borehole_heap::rmem::MappedGraph::open(&file).unwrap();
    view.check().unwrap();
    assert_eq!(plain(&view), plain(&graph));
    assert_eq!(written(&view, JsonLayout::Compact), written(&graph, JsonLayout::Compact));
}

#[test]
fn pretty_json_only_adds_line_breaks() {
    let graph = small();
    let pretty = written(&graph, JsonLayout::Pretty);
    let value = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
    assert_eq!(value(&pretty), value(&written(&graph, JsonLayout::Compact)));
    assert!(
        pretty.starts_with("{\n    \"summary\": [\n        {\n            \"php_version\": \"v82\",\n"),
        "{pretty}"
    );
    let again = json::read(pretty.as_bytes()).unwrap();
    assert_eq!(written(&again, JsonLayout::Pretty), pretty);
}

#[test]
fn values_keep_their_types() {
    let json = written(&small(), JsonLayout::Compact);
    let value: serde_json::Value = serde_json::from_str(&json).unwrap();
    let object = &value["context"]["call_frames"]["order"];
    assert_eq!(object["id"]["value"], serde_json::json!(-7));
    assert_eq!(object["name"]["#locations"][0]["value"], "caf\u{e9} \u{fffd}/");
    assert_eq!(object["#locations"][0]["class_name"], "Shop\\Order");
    let elements = &object["lines"]["array_elements"];
    assert_eq!(
        elements["#locations"][0],
        serde_json::json!({"address": 0x7300, "size": 320, "is_packed": true})
    );
    assert_eq!(elements["#count"], 1);
    assert_eq!(elements["0"], serde_json::json!({"#reference_node_id": 1}));
    assert_eq!(value["summary"][0]["memory_get_usage"], 453_232);
    assert_eq!(
        value["class_objects_summary"]["Shop\\Order"],
        serde_json::json!({"count": 1, "memory_usage": 40})
    );
}

#[test]
fn a_list_a_million_long_is_written_and_read() {
    let mut json =
        b"{\"summary\":[[]],\"location_types_summary\":[],\"class_objects_summary\":[],\"context\":".to_vec();
    let depth = 1_000_000;
    for node in 0..depth {
        let link = if node == 0 { "{\"root\":" } else { ",\"next\":" };
        json.extend(format!("{link}{{\"#node_id\":{node},\"#type\":\"ObjectContext\"").bytes());
    }
    json.extend(vec![b'}'; depth + 2]);
    let graph = json::read(&json).unwrap();
    assert_eq!(graph.counts().nodes, depth);
    assert_eq!(written(&graph, JsonLayout::Compact).as_bytes(), json);
}

/// Cases that take quadratic time if each one is searched among all before it.
#[test]
fn facts_of_locations_are_stored_once() {
    const COUNT: usize = 1_000_000;
    let facts: String = (0..COUNT).map(|key| format!(",\"{key}\":{key}")).collect();
    let location = format!("{{\"line_start\":1{facts}}}");
    let node = format!(
        "{{\"#node_id\":0,\"#type\":\"A\",\"7\":\"own\",\"#locations\":[{location},{location}],\"7\":\"second\"}}"
    );
    let graph = json::read(format!("{{\"context\":{{\"a\":{node}}}}}").as_bytes()).unwrap();
    assert_eq!((graph.counts().locations, graph.counts().attributes), (2, COUNT + 2));
    let attributes = graph.attributes(NodeId(0)).map(|row| graph.attribute(row));
    let sevens = attributes.filter(|found| graph.string(found.key) == b"7");
    let values: Vec<_> = sevens.map(|found| graph.string(found.value).to_vec()).collect();
    assert_eq!(values, [&b"own"[..], b"second"]);
}

#[test]
fn errors_have_positions() {
    let wrong = |json: &str| json::read(json.as_bytes()).unwrap_err().to_string();
    assert_eq!(wrong("[]"), "expected '{', found '[' (heap json, at byte 0x0)");
    for other in ["{}", "{\"a\":1}", "{\"summary\":[{}]}"] {
        assert!(wrong(other).starts_with("missing context: expected"), "{other}");
    }
    assert_eq!(
        wrong("{\"context\":{\"a\":{\"#node_id\":0}}}"),
        "expected #type after #node_id (heap json, at byte 0x1e)"
    );
    assert!(wrong("{\"context\":{\"a\":{\"#reference_node_id\":7}}}").contains("missing node 7"));
    assert!(wrong("{\"context\":{\"a\":{").contains("truncated"));
    let twice = "{\"#node_id\":0,\"#type\":\"A\"}";
    assert!(wrong(&format!("{{\"context\":{{\"a\":{twice},\"b\":{twice}}}}}")).contains("duplicate node 0"));
    let located = "{\"#node_id\":0,\"#type\":\"A\",\"#locations\":[],\"x\":1,\"#locations\":[]}";
    assert!(wrong(&format!("{{\"context\":{{\"a\":{located}}}}}")).contains("duplicate #locations"));
    let nested = "{\"#node_id\":0,\"#type\":\"A\",\"#locations\":[{\"address\":8,\"#locations\":[]}]}";
    let said = wrong(&format!("{{\"context\":{{\"a\":{nested}}}}}"));
    assert!(said.starts_with("expected a fact about a location, found #locations"), "{said}");
}

/// Array keys of a program may equal the format's own keys for facts about arrays.
#[test]
fn elements_with_the_names_of_facts_are_read_as_elements() {
    let names = ["#locations", "#node_id", "#reference_node_id", "#type", "#count"];
    let mut builder = GraphBuilder::new();
    let (array, root) = (builder.node(NodeType::ARRAY_ELEMENTS), builder.string(b"array"));
    let strong = Strength::Strong;
    builder.edge(Edge { parent: None, child: array, link: root, is_tree: true, strength: strong });
    builder.location(array, &MemoryLocation::new(LocationType::ARRAY_TABLE, 0x7300, 320));
    for name in names {
        let (child, link) = (builder.node(NodeType::ARRAY_ELEMENT), builder.string(name.as_bytes()));
        builder.edge(Edge { parent: Some(array), child, link, is_tree: true, strength: strong });
    }
    let once = written(&builder.finish().unwrap(), JsonLayout::Compact);
    let again = json::read(once.as_bytes()).unwrap();
    let children = again.children(Some(array)).map(|row| again.child(row).unwrap());
    assert_eq!(
        children.map(|child| again.string(child.link).to_vec()).collect::<Vec<_>>(),
        names.map(|name| name.as_bytes().to_vec())
    );
    assert_eq!(again.locations(array).count(), 1);
    assert_eq!(written(&again, JsonLayout::Compact), once);
}

#[test]
fn a_text_that_reads_as_a_list_is_written_as_that_list_again_and_again() {
    let graph = json::read(b"{\"summary\":[{\"a\":\"[ 1,\\n2 ]\",\"b\":\"[ 1\"}],\"context\":{}}").unwrap();
    let once = written(&graph, JsonLayout::Compact);
    assert!(once.starts_with("{\"summary\":[{\"a\":[1,2],\"b\":\"[ 1\"}]"), "{once}");
    assert_eq!(written(&json::read(once.as_bytes()).unwrap(), JsonLayout::Compact), once);
}

#[test]
fn truncated_and_changed_files_cause_no_panic() {
    let good = written(&small(), JsonLayout::Compact).into_bytes();
    let usable = |graph: &HeapGraph| graph.node_type_name(NodeId(0)).len();
    for end in 0..good.len() {
        assert!(json::read(&good[..end]).is_err(), "{end}");
    }
    for at in 0..good.len() {
        for value in [b'"', b'{', b'}', b'[', b'\\', b'9', 0xff] {
            let mut json = good.clone();
            json[at] = value;
            let _ = json::read(&json).as_ref().map(usable);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn any_graph_is_valid_json_and_the_same_when_it_was_read(graph in graph()) {
        let json = written(&graph, JsonLayout::Compact);
        let value: Result<serde_json::Value, _> = serde_json::from_str(&json);
        prop_assert!(value.is_ok(), "{:?}", value);
        let again = json::read(json.as_bytes()).unwrap();
        prop_assert_eq!(again.counts().nodes, graph.counts().nodes);
        prop_assert_eq!(written(&again, JsonLayout::Compact), json);
    }
}
