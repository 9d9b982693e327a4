//! Tests of callbacks, and of calls being prepared.

use borehole_heap::NodeId;

use super::graph::{Graph, see};
use crate::heap::live;

/// The links below `node`, with their targets: strings and classes by name, calls by their function.
fn shown(graph: &Graph<'_>, node: NodeId) -> Vec<String> {
    let children = graph.children.get(&Some(node)).into_iter().flatten();
    let text = |node: NodeId| -> String {
        if let Some(function) = graph.attributes.get(&(node, "function_name".to_owned())) {
            return function.clone();
        }
        let location = graph.locations.get(&node).map(|locations| locations[0]);
        let class = location.and_then(|location| location.class);
        let string = location.and_then(|location| location.string);
        class.or(string).map_or_else(|| "…".to_owned(), |name| graph.heap.text(name))
    };
    children.map(|(link, child)| format!("{link}: {}", text(*child))).collect()
}

/// The innermost frame of a function.
fn frame(graph: &Graph<'_>, function: &str) -> NodeId {
    let frames = graph.at(&["call_frames"]);
    let children = &graph.children[&Some(frames)];
    let found = children.iter().find(|(_, frame)| graph.attribute(*frame, "function_name") == function);
    found.unwrap_or_else(|| panic!("no frame of {function}")).1
}

#[test]
fn what_php_calls_by_itself_has_roots_of_its_own() {
    let (_, peer, root) = live::phps().remove(0);
    let copied = live::copy(&peer, &root, "internals/callables", &[], &[]).unwrap();
    let seen = see(&copied);
    assert_eq!((seen.walked.missing, seen.walked.torn), (0, 0));
    let graph = Graph::new(&seen.heap);
    // After the name of a closure comes its place.
    let name = |node| graph.attribute(node, "function_name").split('(').next().unwrap().to_owned();
    let of = |root: &str, key: &str| {
        let node = graph.at(&[root, key]);
        (name(node), shown(&graph, node))
    };
    let names = |root: &str| -> Vec<String> {
        let node = graph.at(&[root]);
        graph.links(node).into_iter().map(|key| of(root, key).0).collect()
    };
    assert_eq!(names("shutdown_functions"), ["ended", "Called::end", "{closure}"]);
    assert!(of("shutdown_functions", "1").1.contains(&"callback: Called".to_owned()));
    assert!(of("shutdown_functions", "2").1.contains(&"callback: Closure".to_owned()));
    let expected = ["found", "Called::__invoke", "{closure}", "Called::find"];
    assert_eq!(names("autoloaders"), expected);
    assert_eq!(of("autoloaders", "1").1, ["callback: Called"]);
    assert_eq!(of("autoloaders", "2").1, ["callback: Closure"]);

    let buffers = graph.at(&["output_buffers"]);
    assert_eq!((graph.links(buffers), graph.count(buffers)), (vec!["0", "1"], 2));
    let [outer, inner] = ["0", "1"].map(|number| graph.child(buffers, number));
    assert_eq!([outer, inner].map(|buffer| graph.attribute(buffer, "used")), ["500", "50"]);
    assert_eq!(name(graph.child(outer, "handler")), "{closure}");
    assert_eq!(graph.string(graph.child(inner, "name")), "default output handler");
    assert!(graph.location(graph.child(outer, "buffer")).size >= 500);
}

#[test]
fn arguments_of_calls_that_are_being_prepared_are_named() {
    for opcache in ["opcache.enable_cli=0", "opcache.enable_cli=1"] {
        let (_, peer, root) = live::phps().remove(0);
        let copied = live::copy(&peer, &root, "internals/callables", &["-d", opcache], &[]).unwrap();
        let seen = see(&copied);
        assert_eq!((seen.walked.missing, seen.walked.torn), (0, 0), "{opcache}");
        let graph = Graph::new(&seen.heap);
        let work = frame(&graph, "work");
        let prepared = |number: &str| {
            let call = graph.child(work, &format!("prepared_call[{number}]"));
            (graph.attribute(call, "function_name").to_owned(), shown(&graph, call))
        };
        let (function, arguments) = prepared("0");
        assert_eq!(function, "Prepared::call");
        let given = format!("$args[0]: {}", "r".repeat(25));
        assert_eq!(arguments, ["this: Prepared", &given, "$args[1]: Called"]);
        let (function, arguments) = prepared("1");
        assert_eq!(function, "outer");
        assert_eq!(arguments[0], format!("$args[0]: {}", "p".repeat(30)));
        assert_eq!((arguments.len(), &arguments[1][..8]), (2, "$args[1]"));
        assert!(!graph.links(work).contains(&"prepared_call[2]"));
        // A frame that prepares no call has none.
        let waiting = frame(&graph, "waits");
        assert!(!graph.links(waiting).iter().any(|link| link.starts_with("prepared")), "{opcache}");
    }
}

#[test]
fn a_statement_holds_its_connection() {
    let (_, peer, root) = live::phps().remove(0);
    let copied = live::copy(&peer, &root, "internals/extensions", &[], &[]).unwrap();
    let seen = see(&copied);
    let graph = Graph::new(&seen.heap);
    let [database, statement] =
        ["0", "1"].map(|key| graph.element(graph.element(graph.global("kept"), "database"), key));
    assert_eq!([database, statement].map(|object| graph.class(object)), ["PDO", "PDOStatement"]);
    assert_eq!(graph.child(statement, "database_object_handle"), database);
    // The driver's memory is not PHP's, but the connection is.
    assert!(graph.location(graph.child(database, "connection")).size > 100);
}
