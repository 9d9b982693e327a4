//! References that keep memory in PHP, and what only looks like one.

use std::path::{Path, PathBuf};

use borehole_testkit::{Scratch, corpus};
use serde_json::{Value, json};

use crate::leaks::{Waiting, report};
use crate::pool;
use crate::program::{run, text, wait_for};

fn holder(name: &str) -> PathBuf {
    corpus(&format!("php/holders/{name}.php"))
}

/// The rows of an answer about a heap.
pub(crate) fn ask(heap: &Path, question: &[&str]) -> Vec<Value> {
    let answer = run(&[&["heap", "ask", text(heap)], question, &["--json", "--limit", "0"]].concat()).done();
    let answer: Value = serde_json::from_slice(&answer).unwrap();
    answer["rows"].as_array().unwrap().clone()
}

/// The nodes of a type among the targets with a name.
fn named(heap: &Path, name: &str, node_type: &str) -> Vec<Value> {
    let found = ask(heap, &["find", "--name", name]);
    found.into_iter().filter(|row| row["type"] == node_type).collect()
}

fn root_paths(heap: &Path) -> Vec<String> {
    ask(heap, &["roots"]).iter().map(|row| row["path"].as_str().unwrap().to_owned()).collect()
}

/// The findings of a kind.
fn findings(heap: &Path, kind: &str) -> Vec<Value> {
    let all = report(heap)["findings"].as_array().unwrap().clone();
    all.into_iter().filter(|finding| finding["kind"] == kind).collect()
}

#[test]
fn an_array_of_streams_retains_what_php_frees_with_it() {
    let scratch = Scratch::new();
    for kind in ["memory", "temp", "file"] {
        let Some(waiting) = Waiting::start_with("php", &holder("streams"), &[("KIND", kind)]) else { return };
        let heap = waiting.capture(&scratch);
        let arrays = named(&heap, "handles", "ArrayHeaderContext");
        assert_eq!(arrays.len(), 1, "{kind}: {arrays:?}");
        assert_eq!(arrays[0]["retained_bytes"], waiting.facts["freed"], "{kind}");
        assert!(waiting.facts["freed"].as_u64().unwrap() > 12_000_000, "{kind}");
    }
}

#[test]
fn what_only_a_module_refers_to_is_not_garbage() {
    let scratch = Scratch::new();
    let allocators = [&[][..], &[("USE_ZEND_ALLOC", "0")]];
    for environment in allocators {
        for options in [&[][..], &["--exclude-heap"]] {
            let Some(waiting) = Waiting::start_with("php", &holder("signal"), environment) else { return };
            let heap = waiting.capture_with(&scratch, options);
            assert_eq!(findings(&heap, "garbage_cycles"), [Value::Null; 0], "{environment:?} {options:?}");
            let roots = root_paths(&heap);
            assert!(!roots.iter().any(|root| root == "<garbage>"), "{environment:?} {options:?}: {roots:?}");
            if options.is_empty() {
                let kept = named(&heap, "kept", "ArrayElementContext");
                let retained = kept.iter().filter_map(|row| row["retained_bytes"].as_u64()).max();
                assert!(retained >= Some(3_000_000), "{environment:?}: {kept:?}");
            }
        }
    }
}

#[test]
fn garbage_that_holds_itself_through_classes_of_php_has_cycles_to_break() {
    let scratch = Scratch::new();
    let Some(waiting) = Waiting::start("php", &holder("iterators")) else { return };
    let found = findings(&waiting.capture(&scratch), "garbage_cycles");
    assert_eq!(found.len(), 1);
    let facts = &found[0]["facts"];
    assert_eq!(facts["cycles"], 20, "{facts}");
    assert!(facts["objects"].as_u64() >= Some(40), "{facts}");
    assert_eq!(facts["back_reference"], "Rows::$outer -> IteratorIterator");
    assert!(found[0]["path"].as_str().unwrap().starts_with("<garbage>."), "{}", found[0]);
}

#[test]
fn the_list_of_weak_references_holds_none_of_them() {
    let scratch = Scratch::new();
    let Some(waiting) = Waiting::start("php", &holder("weakly")) else { return };
    let found = findings(&waiting.capture(&scratch), "garbage_cycles");
    let facts = &found[0]["facts"];
    // Each with its map and its reference.
    assert_eq!((&facts["cycles"], &facts["objects"]), (&json!(20), &json!(60)), "{}", found[0]);
}

#[test]
fn a_variable_belongs_to_the_included_file_that_has_it_now() {
    let scratch = Scratch::new();
    let Some(waiting) = Waiting::start("php", &holder("including")) else { return };
    let heap = waiting.capture(&scratch);
    let paths = |name: &str| -> Vec<String> {
        let found = named(&heap, name, "StringContext");
        found.iter().map(|row| row["path"].as_str().unwrap().to_owned()).collect()
    };
    // The line of the frame that each has: of the included file, and of the one that includes it.
    for (name, frame) in
        [("kept", "<main>:6"), ("replaced", "<main>:6"), ("other", "<main>:6"), ("untouched", "<main>:7")]
    {
        assert_eq!(paths(name), [format!("{frame}::${name}")]);
        let string = &named(&heap, name, "StringContext")[0];
        assert!(string["retained_bytes"].as_u64() > Some(100_000), "{string}");
    }
    assert_eq!(paths("removed"), [""; 0]);
}

#[test]
fn data_of_a_preloaded_class_is_not_live_after_the_request() {
    let scratch = Scratch::new();
    let files = corpus("php/holders/preloaded");
    let preloading = format!("opcache.preload={}", text(&files.join("all.php")));
    let settings = ["-d", "opcache.enable=1", "-d", &preloading, "-d", "opcache.preload_user=root"];
    let Some(pool) = pool::start(&scratch, "preloading", 1, &settings) else { return };
    let socket = scratch.path("socket");
    pool::request(&socket, &files.join("page.php"), "/page.php");
    let children = format!("/proc/{0}/task/{0}/children", pool.id());
    let worker = wait_for(|| {
        let children = std::fs::read_to_string(&children).unwrap();
        children.split_whitespace().next().map(str::to_owned)
    });
    let heap = scratch.path("heap.rmem");
    run(&["heap", "capture", "-p", &worker, "-o", text(&heap)]).done();
    assert!(!ask(&heap, &["find", "--name", r"preloaded\cache"]).is_empty());
    // Only the initial values are still there.
    for name in ["rows", "calls"] {
        let found = ask(&heap, &["find", "--name", name]);
        assert!(found.iter().all(|row| row["retained_bytes"].as_u64() < Some(1000)), "{name}: {found:?}");
    }
    assert_eq!(named(&heap, "global", "StringContext"), [Value::Null; 0]);
    let roots = root_paths(&heap);
    for root in ["<call_frames>", "<global_variables>", "<objects_store>", "<regular_list>"] {
        assert!(!roots.iter().any(|known| known == root), "{root}: {roots:?}");
    }
}
