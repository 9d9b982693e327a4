//! Paths in graphs that reli recorded, of programs whose source determines the result.

use std::collections::BTreeSet;

use borehole_heap::path::{STEPS, StepPaths, path};
use borehole_heap::{
    Edge, Graph, GraphBuilder, HeapGraph, HeapSink as _, NodeId, NodeType, Strength, TreeParents, json,
};

use crate::json::reli;

fn all(graph: &HeapGraph) -> BTreeSet<String> {
    let parents = TreeParents::of(graph);
    let nodes = 0..u32::try_from(graph.counts().nodes).unwrap();
    nodes.map(|node| String::from_utf8(path(graph, &parents, NodeId(node))).unwrap()).collect()
}

#[test]
fn variables_elements_and_properties_are_written_as_in_php() {
    let paths = all(&json::read(&reli("m1_objects")).unwrap());
    for expected in [
        "<main>:3::$bag->b[1]",
        "<main>:3::$bag->dyn7",
        "<main>:3::$prev->prev->tags[0]",
        "<main>:3::$ex->previous",
        "<main>:3::$std->n->deep",
        "Shop\\Entity::$registry",
        "Shop\\Entity::$counter",
        "Shop\\Status::DEFAULT",
        "usleep::$args_to_internal_function[0]",
        "PHP_VERSION_ID",
        "array_values()",
        "Shop\\Entity::id()",
        "<call_frames>",
        "<objects_store>",
    ] {
        assert!(paths.contains(expected), "missing {expected}");
    }
    let found = all(&json::read(&reli("m3_closures")).unwrap());
    assert!(found.contains("<main>:3::$s->handlers['a'][0]"));
}

#[test]
fn calls_of_a_generator_follow_its_path() {
    // The references by which our walk reaches a variable of a suspended generator.
    let way = [
        ("call_frames", NodeType::CALL_FRAMES),
        ("main", NodeType::CALL_FRAME),
        ("local_variables", NodeType::CALL_FRAME_VARIABLE_TABLE),
        ("rows", NodeType::OBJECT),
        ("generator", NodeType::GENERATOR),
        ("call_frames", NodeType::CALL_FRAMES),
        ("App\\rows", NodeType::CALL_FRAME),
        ("local_variables", NodeType::CALL_FRAME_VARIABLE_TABLE),
        ("row", NodeType::STRING),
    ];
    let mut builder = GraphBuilder::new();
    let mut parent = None;
    for (link, node_type) in way {
        let (link, child) = (builder.string(link.as_bytes()), builder.node(node_type));
        builder.edge(Edge { parent, child, link, is_tree: true, strength: Strength::Strong });
        parent = Some(child);
    }
    let paths = all(&builder.finish().unwrap());
    assert!(paths.contains("main::$rows.generator.call_frames.App\\rows::$row"), "{paths:?}");
    assert!(paths.contains("main::$rows.generator.call_frames"), "{paths:?}");
}

#[test]
fn paths_of_steps_equal_paths_of_nodes() {
    let graph = json::read(&reli("m1_objects")).unwrap();
    let parents = TreeParents::of(&graph);
    let nodes = 0..u32::try_from(graph.counts().nodes).unwrap();
    let deepest = nodes.map(NodeId).max_by_key(|&node| parents.path(node).len()).unwrap();
    let way = parents.path(deepest);
    assert!(way.len() > 4 * STEPS);
    let links = way.iter().map(|&node| (node, graph.string(parents.link(node).unwrap())));
    let paths = StepPaths::new(&graph, links);
    for (step, &node) in way.iter().enumerate() {
        assert_eq!(paths.path(step), path(&graph, &parents, node));
    }
}

#[test]
fn the_middle_of_a_long_path_is_counted() {
    let paths = all(&json::read(&reli("m1_objects")).unwrap());
    let long: Vec<&String> = paths.iter().filter(|path| path.contains(" more)")).collect();
    let deepest = long.iter().max_by_key(|path| path.len()).expect("fifty products refer to each other");
    assert!(deepest.starts_with("<main>:3::$prev->prev->prev->prev->prev"), "{deepest}");
    assert!(deepest.matches("->").count() < 60, "{deepest}");
}
