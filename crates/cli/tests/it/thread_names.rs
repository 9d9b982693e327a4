//! Threads of different processes may have the same number, as in containers. They keep their own names in every format.

use std::collections::BTreeMap;

use borehole_testkit::Scratch;
use serde_json::{Value, json};

use crate::program::run;

/// Thread 1 of two processes, with different names, and thread 2 of one of them, without a name.
fn input(folder: &Scratch) -> String {
    let sample = |time_ns: u64, process: u64, thread: u64| {
        json!({
            "type": "sample", "count": 1, "time_ns": time_ns, "pid": process, "tid": thread,
            "frames": [{"function": "f"}],
        })
    };
    let name = |process: u64, name: &str| json!({"type": "thread", "pid": process, "tid": 1, "name": name});
    let lines = [
        json!({"type": "file", "schema_version": 1, "format": "rbt"}),
        json!({"type": "segment", "index": 0, "format": "rbt", "has_times": true, "period_ns": 1000}),
        name(70, "web"),
        name(80, "worker"),
        sample(0, 70, 1),
        sample(1000, 80, 1),
        sample(2000, 80, 2),
        json!({"type": "end", "samples": 3, "events": 0, "lost_bytes": 0, "warnings": []}),
    ];
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    folder.write("two.jsonl", text.as_bytes()).to_string_lossy().into_owned()
}

/// The thread names of files, as a report shows them.
fn names(files: &[&str]) -> BTreeMap<(Option<u64>, u64), Value> {
    let report = run(&[&["report", "--json", "--by", "thread"], files].concat()).done();
    let report: Value = serde_json::from_slice(&report).unwrap();
    let rows = report["by"]["rows"].as_array().unwrap_or_else(|| panic!("{report}"));
    rows.iter()
        .map(|row| ((row["pid"].as_u64(), row["tid"].as_u64().unwrap()), row["name"].clone()))
        .collect()
}

#[test]
fn threads_keep_the_names_of_their_process_in_every_format() {
    let folder = Scratch::new();
    let input = input(&folder);
    let named =
        [((Some(70), 1), json!("web")), ((Some(80), 1), json!("worker")), ((Some(80), 2), Value::Null)];
    assert_eq!(names(&[&input]), BTreeMap::from(named));
    for format in ["jsonl", "pprof", "otlp", "trc", "gecko"] {
        let converted = folder.path(format);
        let converted = converted.to_str().unwrap();
        run(&["convert", &input, "--to", format, "-o", converted]).done();
        assert_eq!(names(&[converted]), names(&[&input]), "{format}");
    }
    for (format, shown) in [
        ("speedscope", ["process 70, thread 1, web", "process 80, thread 1, worker"]),
        ("chrome-trace", [r#""name":"web""#, r#""name":"worker""#]),
    ] {
        let text = String::from_utf8(run(&["convert", &input, "--to", format]).done()).unwrap();
        shown.iter().for_each(|name| assert!(text.contains(name), "{name} in {format}: {text}"));
    }
}

#[test]
fn thread_names_without_a_process_do_not_apply_to_other_inputs() {
    let folder = Scratch::new();
    let input = |name: &str, process: Option<u64>, thread_name: Option<&str>| {
        let mut lines = vec![json!({"type": "file", "schema_version": 1, "format": "rbt"})];
        lines.push(
            json!({"type": "segment", "index": 0, "format": "rbt", "has_times": false, "pid": process}),
        );
        lines.extend(thread_name.map(|name| json!({"type": "thread", "tid": 1, "name": name})));
        lines.push(json!({"type": "sample", "count": 1, "tid": 1, "frames": [{"function": "f"}]}));
        lines.push(json!({"type": "end", "samples": 1, "events": 0, "lost_bytes": 0, "warnings": []}));
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        folder.write(name, text.as_bytes()).to_string_lossy().into_owned()
    };
    let (nobodys, seven) = (input("a.jsonl", None, Some("main")), input("b.jsonl", Some(7), None));
    let named = BTreeMap::from([((None, 1), json!("main")), ((Some(7), 1), Value::Null)]);
    assert_eq!(names(&[&nobodys, &seven]), named);
    let stored = folder.path("both.pb.gz");
    let stored = stored.to_str().unwrap();
    run(&["convert", &nobodys, &seven, "--to", "pprof", "-o", stored]).done();
    assert_eq!(names(&[stored]), named);
}
