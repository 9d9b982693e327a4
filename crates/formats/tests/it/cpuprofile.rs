//! CPU profiles of V8, compared with speedscope's importer.

use std::collections::BTreeMap;

use borehole_formats::{Error, Export as _, ReadOptions, cpuprofile};
use borehole_model::{Context, Frame, ProfileSink as _, Recovery, Sample, Segment, Tables};
use borehole_testkit::peers::speedscope_import;
use borehole_testkit::{Scratch, read_corpus};
use serde_json::{Value, json};

use crate::damage::each_change;
use crate::play::{Collect, collected};

fn read_with(bytes: &[u8], options: &ReadOptions) -> Result<(Collect, Recovery), Error> {
    collected(|tables, sink| cpuprofile::import(bytes, options, tables, sink))
}

fn read(document: &Value) -> Collect {
    let (collect, recovery) = read_with(document.to_string().as_bytes(), &ReadOptions::default()).unwrap();
    assert!(recovery.is_clean(), "{:?}", recovery.warnings);
    collect
}

fn node(id: u64, name: &str, children: &[u64]) -> Value {
    let frame = json!({"functionName": name, "url": "/f.js", "lineNumber": 4, "columnNumber": 2});
    json!({"id": id, "callFrame": frame, "hitCount": id, "children": children})
}

#[test]
fn self_times_are_those_of_speedscope() {
    let bytes = read_corpus("v8/work.cpuprofile");
    let (collect, recovery) = read_with(&bytes, &ReadOptions::default()).unwrap();
    assert!(recovery.is_clean());
    let mut own = BTreeMap::new();
    for sample in collect.samples() {
        let leaf = &sample.frames_leaf_first[0];
        let file = leaf.file.as_deref().and_then(|file| file.rsplit('/').next());
        // Its name for functions without one.
        let name = match (&*leaf.function, file, leaf.line) {
            ("(anonymous)", Some(file), Some(line)) => format!("(anonymous {file}:{line})"),
            (name, ..) => name.to_owned(),
        };
        *own.entry(name).or_insert(0) += sample.values[0];
    }
    let document: Value = serde_json::from_slice(&bytes).unwrap();
    let microseconds = |key: &str| document[key].as_i64().unwrap();
    let first = document["timeDeltas"][0].as_i64().unwrap();
    let whole = microseconds("endTime") - microseconds("startTime") - first;
    assert_eq!(own.values().sum::<i64>(), whole * 1000);
    // The importer takes the last sample for the end.
    let last = collect.samples().last().unwrap();
    *own.get_mut(&last.frames_leaf_first[0].function).unwrap() -= last.values[0];
    own.retain(|_, time| *time > 0);
    let scratch = Scratch::new();
    let Some(import) = speedscope_import(&scratch.write("work.cpuprofile", &bytes)) else { return };
    let profile = &import.unwrap().profiles[0];
    assert_eq!(profile.unit, "microseconds");
    for (name, &weight) in profile.self_weights.iter().filter(|(_, weight)| **weight > 0.0) {
        let ours = own.remove(name).unwrap_or_else(|| panic!("{name} is missing"));
        assert_eq!(ours as f64 / 1000.0, weight, "{name}");
    }
    // It leaves out what V8 does while no function runs.
    let left: Vec<_> = own.keys().map(String::as_str).collect();
    assert!(left.iter().all(|name| ["(idle)", "(root)"].contains(name)), "{left:?}");
}

/// The document that another one becomes, with what it lost.
fn rewritten(bytes: &[u8]) -> (Vec<u8>, String) {
    let mut output = Vec::new();
    let spool = || Ok(Box::new(std::io::Cursor::new(Vec::new())) as _);
    let mut exporter = cpuprofile::Exporter::new(&mut output, None, spool);
    let mut tables = Tables::default();
    cpuprofile::import(bytes, &ReadOptions::default(), &mut tables, &mut exporter).unwrap();
    exporter.finish(&tables).unwrap();
    let losses = exporter.losses().to_string();
    drop(exporter);
    (output, losses)
}

#[test]
fn a_written_profile_is_the_same_to_us_and_to_speedscope() {
    let bytes = read_corpus("v8/work.cpuprofile");
    let (output, losses) = rewritten(&bytes);
    assert_eq!(losses, "");
    let samples = |bytes: &[u8]| {
        let (collect, _) = read_with(bytes, &ReadOptions::default()).unwrap();
        collect.samples().cloned().collect::<Vec<_>>()
    };
    assert_eq!(samples(&output), samples(&bytes));
    let scratch = Scratch::new();
    let import = |name: &str, bytes: &[u8]| speedscope_import(&scratch.write(name, bytes));
    let Some(ours) = import("ours.cpuprofile", &output) else { return };
    let theirs = import("theirs.cpuprofile", &bytes).unwrap().unwrap();
    assert_eq!(ours.unwrap().profiles[0].self_weights, theirs.profiles[0].self_weights);
}

#[test]
fn times_without_samples_are_idle() {
    let frame = |tables: &mut Tables| {
        let name = tables.intern_string(b"f").unwrap();
        let frame = tables.intern_frame(&Frame::named(name)).unwrap();
        Some(tables.intern_stack(None, frame).unwrap())
    };
    let mut output = Vec::new();
    let spool = || Ok(Box::new(std::io::Cursor::new(Vec::new())) as _);
    let mut exporter = cpuprofile::Exporter::new(&mut output, None, spool);
    let mut tables = Tables::default();
    let stack = frame(&mut tables);
    let segment = Segment { period_ns: Some(10_000), has_times: true, ..Segment::default() };
    let at = Context { tables: &tables, segment: &segment };
    exporter.segment(at).unwrap();
    for (time_ns, count) in [(50_000, 2), (71_000, 1), (100_500, 1)] {
        let sample = Sample { stack, count, time_ns: Some(time_ns), ..Sample::default() };
        let _ = exporter.sample(at, &sample).unwrap();
    }
    exporter.finish(&tables).unwrap();
    // The second sample follows the run at once, a little later than it ends.
    assert_eq!(exporter.losses().to_string(), "exact times of samples dropped: 1");
    drop(exporter);
    let (collect, _) = read_with(&output, &ReadOptions::default()).unwrap();
    let found: Vec<_> = collect
        .samples()
        .map(|sample| {
            let name = sample.frames_leaf_first[0].function.clone();
            (name, sample.time_ns.unwrap(), sample.values[0])
        })
        .collect();
    let expected = [
        ("f", 50_000, 10_000),
        ("f", 60_000, 10_000),
        ("f", 70_000, 10_000),
        ("(idle)", 80_000, 20_500),
        ("f", 100_500, 10_000),
    ];
    assert_eq!(found, expected.map(|(name, time_ns, lasts_ns)| (name.to_owned(), time_ns, lasts_ns)));
}

#[test]
fn functions_have_the_place_at_which_they_begin() {
    let bytes = read_corpus("v8/work.cpuprofile");
    let (collect, _) = read_with(&bytes, &ReadOptions::default()).unwrap();
    let mut frames = collect.samples().flat_map(|sample| &sample.frames_leaf_first);
    let hot = frames.find(|frame| frame.function == "hot").unwrap();
    assert_eq!((hot.line, hot.column), (Some(4), Some(12)));
    assert_eq!(hot.file.as_deref(), Some("file:///tmp/perfwork/work.js"));
    let mut names = collect.samples().flat_map(|sample| &sample.frames_leaf_first);
    assert!(names.any(|frame| frame.function == "(anonymous)"));
}

#[test]
fn a_sample_lasts_until_the_next_one_and_late_samples_are_sorted() {
    let document = json!({
        "nodes": [node(1, "(root)", &[2]), node(2, "f", &[3]), node(3, "g", &[])],
        "startTime": 100, "endTime": 200,
        "samples": [2, 3, 2], "timeDeltas": [10, 50, -20],
    });
    let (collect, recovery) = read_with(document.to_string().as_bytes(), &ReadOptions::default()).unwrap();
    let found: Vec<_> = collect
        .samples()
        .map(|sample| (sample.frames_leaf_first.len(), sample.time_ns.unwrap(), sample.values[0]))
        .collect();
    assert_eq!(found, [(1, 110_000, 30_000), (1, 140_000, 20_000), (2, 160_000, 40_000)]);
    assert_eq!(recovery.notes[0].message, "1 samples out of order are sorted by time");
}

#[test]
fn profiles_without_samples_have_the_counts_of_their_nodes() {
    let collect = read(&json!({"nodes": [node(1, "(root)", &[2]), node(2, "f", &[])]}));
    let counts: Vec<_> =
        collect.samples().map(|sample| (sample.frames_leaf_first.len(), sample.count)).collect();
    assert_eq!(counts, [(0, 1), (1, 2)]);
}

#[test]
fn parents_in_place_of_children_make_the_same_tree() {
    let mut child = node(2, "f", &[]);
    child["parent"] = json!(1);
    let collect = read(&json!({"nodes": [child, node(1, "g", &[])], "samples": [2]}));
    let names: Vec<_> = collect
        .samples()
        .flat_map(|sample| &sample.frames_leaf_first)
        .map(|frame| &*frame.function)
        .collect();
    assert_eq!(names, ["f", "g"]);
}

#[test]
fn damage_is_an_error_or_costs_what_it_hits() {
    let circle =
        json!({"nodes": [node(1, "f", &[2]), node(2, "g", &[1]), node(3, "h", &[])], "samples": [1, 3]});
    let unknown = json!({"nodes": [node(1, "f", &[7])], "samples": [1, 9]});
    for (document, message, samples) in [
        (circle, "node 1 calls itself in a circle", 2),
        (unknown, "unknown child 7 of node 1", 1),
        (
            json!({"nodes": [node(1, "f", &[]), node(1, "g", &[])], "samples": [1]}),
            "two nodes have the id 1",
            1,
        ),
        (json!({"samples": [1]}), "missing field `nodes`", 0),
    ] {
        let text = document.to_string();
        let error = read_with(text.as_bytes(), &ReadOptions::default()).err().unwrap();
        assert_eq!(error.message(), message);
        let (collect, recovery) = read_with(text.as_bytes(), &ReadOptions::lenient()).unwrap();
        assert_eq!((collect.samples().count(), recovery.is_clean()), (samples, false), "{message}");
    }
}

#[test]
fn every_prefix_and_every_changed_byte_is_survived() {
    let bytes = read_corpus("v8/work.cpuprofile");
    for cut in (0..bytes.len()).step_by(7) {
        let error = read_with(&bytes[..cut], &ReadOptions::default()).err().unwrap();
        assert!(error.position() != borehole_formats::Position::Whole, "{cut}: {error}");
    }
    each_change(&bytes, 3, &[b'0', b'"', b'9', b',', 0xff], |changed, _| {
        let _ = read_with(changed, &ReadOptions::lenient());
    });
}
