//! Tests of the places of frames, and of the fill levels of containers.

use super::graph::{Graph, see, walked_as};
use crate::failed::FatalError;
use crate::heap::live;
use crate::heap::walk::{FailedChain, HeapWalkOptions};

#[test]
fn frames_that_an_exception_leaves_are_at_the_line_that_raised_it() {
    let (_, peer, root) = live::phps().remove(0);
    let copied = live::copy(&peer, &root, "internals/suspended", &[], &[]).unwrap();
    let seen = see(&copied);
    assert_eq!((seen.walked.missing, seen.walked.torn), (0, 0));
    let graph = Graph::new(&seen.heap);
    let text = std::fs::read_to_string(borehole_testkit::corpus("php/internals/suspended.php")).unwrap();
    let line = |code: &str| {
        let line = text.lines().position(|line| line.contains(code)).unwrap() + 1;
        line.to_string()
    };
    let frames = graph.at(&["call_frames"]);
    let lines: Vec<_> = graph.children[&Some(frames)]
        .iter()
        .map(|(_, frame)| ["function_name", "lineno"].map(|key| graph.attribute(*frame, key).to_owned()))
        .skip_while(|[name, _]| name != "waits")
        .skip(1)
        .collect();
    let expected = [
        ["Ended::__destruct", &line("waits(); }")],
        ["prepares", &line("takes(made('prepared')")],
        ["returns", &line("            prepares()")],
        ["fails", &line("        returns();")],
        ["<main>", &line("fails();")],
    ];
    assert_eq!(lines, expected.map(|frame| frame.map(ToOwned::to_owned)));
}

#[test]
fn calls_that_failed_have_a_line_and_nothing_that_is_gone() {
    let (_, peer, root) = live::phps().remove(0);
    let copied = live::copy(&peer, &root, "internals/failed", &[], &[]).unwrap();
    let file = {
        let seen = see(&copied);
        let graph = Graph::new(&seen.heap);
        let frames = graph.at(&["call_frames"]);
        let waiting = graph.children[&Some(frames)][1].1;
        graph.attribute(waiting, "file").replace("ready.inc", "failed.php")
    };
    let text = std::fs::read_to_string(borehole_testkit::corpus("php/internals/failed.php")).unwrap();
    let line = text.lines().position(|line| line.contains("while (true)")).unwrap() + 1;
    let line = u32::try_from(line).unwrap();
    let failure = FatalError { file: file.as_bytes(), line, max_depth: 1000 };
    let failed = copied.php.failed_call(&copied.dump, &copied.executor, &failure).unwrap().unwrap();
    assert!(failed.depth > 10, "{failed:?}");
    let depth = u32::try_from(failed.depth).unwrap();
    let options =
        HeapWalkOptions { chain: Some(FailedChain { innermost: failed.frame, depth, line }), redact: false };
    let seen = walked_as(&copied.dump, &copied.php, &copied.executor, &options);
    assert_eq!((seen.walked.missing, seen.walked.torn), (0, 0));
    let graph = Graph::new(&seen.heap);
    let frames = &graph.children[&Some(graph.at(&["call_frames"]))];
    assert_eq!(frames.len(), failed.depth);
    let lines: Vec<_> = frames.iter().map(|(_, frame)| graph.attribute(*frame, "lineno")).collect();
    assert_eq!(lines[0], line.to_string());
    assert!(!lines.contains(&"0"), "{lines:?}");
}

#[test]
fn containers_say_how_much_is_in_them() {
    let (_, peer, root) = live::phps().remove(0);
    let copied = live::copy(&peer, &root, "internals/containers", &[], &[]).unwrap();
    let seen = see(&copied);
    let graph = Graph::new(&seen.heap);
    for (name, count) in [("list", 10), ("queue", 10), ("stack", 10)] {
        let storage = graph.child(graph.global(name), "storage");
        assert_eq!((graph.count(storage), graph.links(storage).len()), (count, count), "{name}");
    }
    let copied = live::copy(&peer, &root, "internals/modern", &[], &[]).unwrap();
    let seen = see(&copied);
    let graph = Graph::new(&seen.heap);
    let entries = graph.child(graph.child(graph.global("map"), "weak_map"), "entries");
    assert_eq!(graph.count(entries), 2);
}
