//! Heap profiles of V8, compared with their tree as another parser sees it.

use std::collections::BTreeMap;

use borehole_formats::{Error, ReadError, ReadOptions, heapprofile};
use borehole_model::{Count, Recovery, Tables};
use borehole_testkit::read_corpus;
use serde_json::Value;

use crate::damage::each_change;
use crate::play::{Collect, collected};

fn read_with(bytes: &[u8], options: &ReadOptions) -> Result<(Collect, Recovery), Error> {
    collected(|tables, sink| heapprofile::import(bytes, options, tables, sink))
}

/// Adds the bytes of a node and of those below it, by their paths.
fn add(node: &Value, path: &str, sums: &mut BTreeMap<String, i64>) {
    let frame = &node["callFrame"];
    let path = match frame["functionName"].as_str().unwrap() {
        "(root)" => String::new(),
        "" => format!("{path};(anonymous) {}", frame["lineNumber"].as_i64().unwrap() + 1),
        name => format!("{path};{name} {}", frame["lineNumber"].as_i64().unwrap() + 1),
    };
    *sums.entry(path.clone()).or_default() += node["selfSize"].as_i64().unwrap();
    node["children"].as_array().unwrap().iter().for_each(|child| add(child, &path, sums));
}

#[test]
fn bytes_are_those_of_the_tree() {
    let bytes = read_corpus("v8/heap.heapprofile");
    let document: Value = serde_json::from_slice(&bytes).unwrap();
    let mut theirs = BTreeMap::new();
    add(&document["head"], "", &mut theirs);
    theirs.retain(|_, sum| *sum != 0);
    let (collect, recovery) = read_with(&bytes, &ReadOptions::default()).unwrap();
    assert!(recovery.is_clean());
    let mut ours = BTreeMap::new();
    for sample in collect.samples() {
        let frames = sample.frames_leaf_first.iter().rev();
        let path: String =
            frames.map(|frame| format!(";{} {}", frame.function, frame.line.unwrap_or(0))).collect();
        *ours.entry(path).or_default() += sample.values[0];
    }
    assert!(ours.len() > 10 && ours.keys().any(|path| path.contains(";prepareExecution 96")));
    assert_eq!(ours, theirs);
    assert_eq!(collect.segments[0].value_types, [("inuse_space".to_owned(), "bytes".to_owned())]);
}

#[test]
fn the_depth_of_calls_has_no_limit_but_memory() {
    let deep = |depth: usize| {
        let node = r#"{"callFrame":{"functionName":"f"},"selfSize":1,"children":["#;
        format!("{{\"head\":{}{}}}", node.repeat(depth), "]}".repeat(depth)).into_bytes()
    };
    let count = |depth: usize, options: &ReadOptions| {
        let mut count = Count::default();
        heapprofile::import(&deep(depth)[..], options, &mut Tables::default(), &mut count)
            .map(|_| count.samples)
    };
    let mut options = ReadOptions::default();
    assert_eq!(count(20_000, &options).unwrap(), 20_000);
    options.limits.memory_bytes = 4 << 20;
    assert!(matches!(count(40_000, &options), Err(ReadError::Input(error)) if error.is_memory()));
}

#[test]
fn damage_is_named_and_what_had_ended_is_kept() {
    let leaf = r#"{"callFrame":{"functionName":"g"},"selfSize":2,"children":[]}"#;
    let head = r#"{"head":{"callFrame":{"functionName":"f"},"selfSize":1,"children":["#;
    for (text, message, samples) in [
        (format!("{head}{leaf}"), "truncated: the document does not end", 1),
        (format!("{head}{leaf},x"), "expected a member of a function, found `x`", 1),
        (format!("{head}{leaf},{{\"selfSize\":\"a\"}}"), "invalid type: string \"a\", expected f64", 1),
        ("{}".to_owned(), "missing field `head`", 0),
    ] {
        let error = read_with(text.as_bytes(), &ReadOptions::default()).err().unwrap();
        assert_eq!(error.message(), message);
        let (collect, recovery) = read_with(text.as_bytes(), &ReadOptions::lenient()).unwrap();
        assert_eq!((collect.samples().count(), recovery.is_clean()), (samples, false), "{message}");
    }
}

#[test]
fn every_prefix_and_every_changed_byte_is_survived() {
    let bytes = read_corpus("v8/heap.heapprofile");
    let whole = bytes.trim_ascii_end().len();
    for cut in (0..whole).step_by(7) {
        assert!(read_with(&bytes[..cut], &ReadOptions::default()).is_err(), "{cut}");
    }
    each_change(&bytes, 5, &[b'0', b'"', b'{', b'}', b']', 0xff], |changed, at| {
        assert!(read_with(changed, &ReadOptions::lenient()).is_ok(), "{at}");
    });
}
