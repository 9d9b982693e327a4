//! Checks the page `docs/dump.md`: its examples are lines that the exporter writes, and it lists every key.

use std::collections::BTreeSet;

use borehole_model::{Thread, ValueType, Warning};
use serde_json::Value;

use super::plain::{Bytes, Call, PlainFrame, PlainLabel, PlainSample, PlainSegment};
use super::plain_event::{PlainEvent, PlainValue};
use super::{FLAT, TABLES, export};

const PAGE: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/dump.md"));

type Profile = (Vec<Call>, Vec<Warning>);

fn frame(function: &str, file: &str, line: Option<i64>) -> PlainFrame {
    let (function, file) = (Bytes::from(function), Some(Bytes::from(file)));
    PlainFrame { function, file, line, ..PlainFrame::default() }
}

/// A frame of PHP as `rbt` has it.
fn php(function: &str, [namespace, class, method]: [&str; 3], file: &str, line: Option<i64>) -> PlainFrame {
    PlainFrame { parts: Some([namespace, class, method].map(Bytes::from)), ..frame(function, file, line) }
}

fn main_frame(line: i64) -> PlainFrame {
    php("<main>", ["", "", "<main>"], "/app/index.php", Some(line))
}

fn sample(frames: &[PlainFrame], count: u64) -> PlainSample {
    PlainSample { frames: frames.to_vec(), count, ..PlainSample::default() }
}

fn pair(key: &str, value: &str) -> (Bytes, Bytes) {
    (Bytes::from(key), Bytes::from(value))
}

/// The profile of the page's first example.
fn plain_profile() -> Profile {
    let query = [php("App\\Db::query", ["App", "Db", "query"], "/app/Db.php", Some(42)), main_frame(7)];
    let sleep = [php("usleep", ["", "", "usleep"], "<internal>", None), main_frame(9)];
    let text = |key: &str, value: &str| (Bytes::from(key), PlainLabel::Text(Bytes::from(value)));
    let labels = Some(vec![text("http.url", "/cart"), text("query", "SELECT 1")]);
    let segment = PlainSegment {
        format: "rbt",
        offset: Some(0),
        period_ns: Some(10_000_000),
        is_ordered: true,
        metadata: vec![pair("pid", "4711")],
        ..PlainSegment::default()
    };
    let calls = vec![
        Call::Segment(segment),
        Call::Sample(sample(&query, 5)),
        Call::Sample(PlainSample { labels, ..sample(&sleep, 1) }),
        Call::Sample(sample(&query, 2)),
    ];
    (calls, Vec::new())
}

/// Further things that `rbt` can hold.
fn rbt_profile() -> Profile {
    let native = PlainFrame {
        function: Bytes::from("zend_execute"),
        native: Some((Bytes::from("libphp.so"), Some(66))),
        ..PlainFrame::default()
    };
    let opcode = Some(Bytes::from("ZEND_DO_FCALL"));
    let run = PlainFrame { opcode, ..php("App\\run", ["App", "", "run"], "/app/run.php", Some(3)) };
    let bad = b"bad\xff".to_vec();
    let parts = Some([Bytes::new(), Bytes::new(), bad.clone()]);
    let bad = PlainFrame { function: bad, parts, ..frame("", "/app/bad.php", Some(0)) };
    let odd = PlainFrame { file: None, ..php("A\\b", ["", "", "A\\b"], "", None) };
    let whole = PlainFrame { file: None, ..frame("App\\c", "", None) };
    let timed = PlainSample {
        delta_us: Some(9987),
        time_ns: Some(20_000_000),
        process: Some(4711),
        ..sample(&[native, run], 1)
    };
    let calls = vec![
        Call::Segment(PlainSegment { format: "rbt", has_times: true, ..PlainSegment::default() }),
        Call::Sample(timed),
        Call::Metadata(Bytes::from("host"), Bytes::from("web-3")),
        Call::Sample(PlainSample { labels: Some(Vec::new()), ..sample(&[bad], 1 << 40) }),
        Call::Sample(sample(&[], 1)),
        Call::Sample(sample(&[odd, whole], 1)),
        Call::Segment(PlainSegment { format: "rbt", index: 1, offset: Some(353), ..PlainSegment::default() }),
        Call::Sample(sample(&[main_frame(7)], 3)),
    ];
    (calls, Vec::new())
}

/// A profile with everything that `pprof` can hold.
fn pprof_profile() -> Profile {
    let value_type = |kind: &str, unit: &str| ValueType { kind: kind.into(), unit: unit.into() };
    let segment = PlainSegment {
        format: "pprof",
        period_ns: Some(10_000_001),
        process: Some(7),
        start_unix_ns: Some(1_767_225_600_000_000_000),
        value_types: vec![value_type("cpu", "nanoseconds"), value_type("alloc_space", "bytes")],
        ..PlainSegment::default()
    };
    let number = |key: &str, value, unit: Option<&str>| {
        (Bytes::from(key), PlainLabel::Number(value, unit.map(Bytes::from)))
    };
    let labels = vec![
        (Bytes::from("thread"), PlainLabel::Text(Bytes::from("main"))),
        number("bytes", 512, Some("bytes")),
        number("retries", -1, None),
    ];
    let measured = PlainSample {
        labels: Some(labels),
        values: vec![10_000_001, 0],
        ..sample(&[frame("f", "", None)], 1)
    };
    let warnings = vec![
        Warning::new("truncated: 4 bytes missing").at(353).losing(12).saving(7),
        Warning::new("checkpoint does not match"),
    ];
    (vec![Call::Segment(segment), Call::Sample(measured)], warnings)
}

/// A profile with the facts of Python's sampling profiler.
fn python_profile() -> Profile {
    let render = PlainFrame {
        end_line: Some(14),
        column: Some(4),
        end_column: Some(31),
        ..frame("Widget.render", "/srv/widget.py", Some(12))
    };
    let observed = PlainSample {
        time_ns: Some(30_000_000),
        thread: Some(4712),
        interpreter: Some(0),
        status: Some(0b100_0011),
        ..sample(&[render], 1)
    };
    let calls = vec![
        Call::Segment(PlainSegment {
            format: "tachyon",
            period_ns: Some(1_000_000),
            has_times: true,
            began_ns: Some(29_000_000),
            depth_limit: Some(256),
            ..PlainSegment::default()
        }),
        Call::Thread(Thread { process: Some(4711), number: 4712 }, Bytes::from("worker 1")),
        Call::Sample(observed),
    ];
    (calls, Vec::new())
}

/// A profile with everything that `trc` can hold.
fn trc_profile() -> Profile {
    let field = |name: &str, value| (Bytes::from(name), value);
    let event = |name: &str, type_id, time_ns, fields: Vec<(Bytes, PlainValue)>| {
        Call::Event(PlainEvent { name: Bytes::from(name), type_id, time_ns, fields })
    };
    let request = vec![
        field("route", PlainValue::text("/cart")),
        field("user_id", PlainValue::Absent),
        field("delta", PlainValue::Signed(-3)),
        field("load", PlainValue::Float(0.75_f64.to_bits())),
        field("ratio", PlainValue::Float(f64::NAN.to_bits())),
        field("ok", PlainValue::Bool(true)),
        field("digest", PlainValue::Bytes(vec![0, 0xff])),
        field("headers", PlainValue::Map(vec![(PlainValue::text("host"), PlainValue::text("web-3"))])),
        field("sizes", PlainValue::List(vec![PlainValue::Unsigned(1), PlainValue::text("two")])),
    ];
    let sample = vec![
        field("callchain", PlainValue::stack(&[0x7f12_0000_1000, 4096])),
        field("thread_name", PlainValue::Unresolved(4)),
    ];
    let poll = vec![
        field("worker_id", PlainValue::Unsigned(1)),
        field("spawn_loc", PlainValue::text("src/main.rs:7")),
    ];
    let calls = vec![
        Call::Source("web-2.bin".to_owned()),
        Call::Segment(PlainSegment {
            format: "trc",
            offset: Some(0),
            has_times: true,
            ..PlainSegment::default()
        }),
        event("PollStartEvent", Some(3), Some(1_000_000_017), poll),
        event("RequestCompleted", Some(256), Some(1_000_000_519), request),
        event("CpuSampleEvent", Some(9), Some(1_000_001_000), sample),
        event("Marker", None, None, Vec::new()),
    ];
    (calls, Vec::new())
}

/// Profiles that together have every key and every type of line.
pub(super) fn profiles() -> [Profile; 5] {
    [plain_profile(), rbt_profile(), pprof_profile(), python_profile(), trc_profile()]
}

/// Whether the warnings in the lines already report a truncation.
pub(super) fn ends_in_a_truncation(lines: &[u8]) -> bool {
    String::from_utf8_lossy(lines).contains("\"message\":\"truncated")
}

fn lines_written() -> BTreeSet<String> {
    let both = |(calls, warnings): &Profile| [TABLES, FLAT].map(|options| export(calls, warnings, options));
    let outputs =
        profiles().iter().flat_map(both).map(|lines| String::from_utf8(lines).unwrap()).collect::<String>();
    outputs.lines().map(str::to_owned).collect()
}

fn examples() -> Vec<&'static str> {
    PAGE.split("```json\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect()
}

#[test]
fn the_first_example_is_a_whole_output() {
    let (calls, warnings) = plain_profile();
    assert_eq!(String::from_utf8(export(&calls, &warnings, TABLES)).unwrap(), examples()[0]);
}

#[test]
fn every_example_is_a_line_that_is_written() {
    let written = lines_written();
    let examples: Vec<_> = examples().concat().lines().map(str::to_owned).collect();
    assert!(examples.len() > 20, "found {} examples", examples.len());
    for example in examples {
        assert!(written.contains(&example), "not written: {example}\namong {written:#?}");
    }
}

#[test]
fn every_type_of_line_has_an_example_and_every_key_is_named() {
    let examples = examples().concat();
    for line in lines_written() {
        let value: Value = serde_json::from_str(&line).unwrap();
        let name = value["type"].as_str().unwrap();
        assert!(examples.contains(&format!("{{\"type\":\"{name}\"")), "no example of {name}");
        let mut keys = BTreeSet::new();
        collect_keys(&value, &mut keys);
        for key in keys {
            assert!(
                PAGE.contains(&format!("`{key}`")) || PAGE.contains(&format!("\"{key}\"")),
                "{key} is not documented"
            );
        }
    }
}

fn collect_keys(value: &Value, keys: &mut BTreeSet<String>) {
    match value {
        Value::Object(members) => members.iter().for_each(|(key, value)| {
            keys.insert(key.clone());
            collect_keys(value, keys);
        }),
        Value::Array(values) => values.iter().for_each(|value| collect_keys(value, keys)),
        _ => {}
    }
}

#[test]
fn a_profile_of_nothing_has_a_first_line_and_a_last() {
    let lines = export(&[], &[], TABLES);
    let expected = "{\"type\":\"file\",\"schema_version\":1}\n\
                    {\"type\":\"end\",\"samples\":0,\"events\":0,\"lost_bytes\":0,\"warnings\":[]}\n";
    assert_eq!(String::from_utf8(lines).unwrap(), expected);
}
