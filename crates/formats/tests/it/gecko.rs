//! Processed profiles, compared with those of CPython's `replay`.
//!
//! Where they differ, `replay` is wrong:
//! * It divides the interval by the number of threads; here it is that of the file.
//! * It throws the threads of all interpreters together by their number; here each has a lane of its own, whose
//!   times do not run backwards.
//! * It ends open markers at the time of the record that comes last in the file, which may be before their
//!   start; here they end with their lane.
//! * It lists markers as they end; here as they begin.
//! * It says "Off CPU" where the status says that nobody looked; here nothing is said.
//! * It writes no instructions; here they are markers, with names of the recorded version.

use std::collections::{BTreeMap, BTreeSet};

use borehole_formats::{Export as _, ReadOptions, gecko, tachyon};
use borehole_model::{Context, ProfileSink as _, Sample, Segment, Status, Tables};
use borehole_testkit::peers::peer;
use borehole_testkit::{Scratch, corpus_files, read_corpus};
use serde_json::Value;

pub(crate) type Exporter<'a> = gecko::Exporter<&'a mut Vec<u8>>;

pub(crate) fn exporter(out: &mut Vec<u8>) -> Exporter<'_> {
    gecko::Exporter::new(out, || Ok(Box::new(std::io::Cursor::new(Vec::new()))))
}

fn exported(name: &str) -> Value {
    let bytes = read_corpus(&format!("tachyon/corpus/{name}.bin"));
    let (mut out, mut tables) = (Vec::new(), Tables::default());
    let mut exporter = exporter(&mut out);
    tachyon::import(&bytes, &ReadOptions::default(), &mut tables, &mut exporter).unwrap();
    exporter.finish(&tables).unwrap();
    let lost: Vec<_> = exporter.losses().iter().map(|(what, _)| what).collect();
    assert!(!lost.iter().any(|what| what.contains("out of order")), "{name}: {lost:?}");
    serde_json::from_slice(&out).unwrap()
}

pub(crate) fn recorded(name: &str, ending: &str) -> Value {
    serde_json::from_slice(&read_corpus(&format!("tachyon/corpus/expected/{name}.{ending}"))).unwrap()
}

pub(crate) fn names() -> Vec<String> {
    let files = corpus_files("tachyon/corpus", ".bin");
    assert_eq!(files.len(), 31);
    files.iter().map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned()).collect()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().unwrap()
}

/// Milliseconds as microseconds.
#[allow(clippy::cast_possible_truncation, reason = "the times of the corpus are small")]
fn us(ms: &Value) -> i64 {
    (ms.as_f64().unwrap() * 1000.0).round() as i64
}

fn at<'a>(column: &'a Value, row: &Value) -> &'a Value {
    &column[usize::try_from(row.as_u64().unwrap()).unwrap()]
}

/// The time of the first sample that a document shows.
fn first_us(profile: &Value) -> i64 {
    let times = list(&profile["threads"]).iter().flat_map(|thread| list(&thread["samples"]["time"]));
    times.map(us).min().unwrap_or(0)
}

/// The functions, files, lines and columns of each stack of a thread, root first.
fn stacks(profile: &Value, thread: &Value) -> Vec<String> {
    let (stacks, frames, functions) = (&thread["stackTable"], &thread["frameTable"], &thread["funcTable"]);
    let text = |place: &Value| match place {
        Value::Null => String::new(),
        place => at(&profile["shared"]["stringArray"], place).as_str().unwrap().to_owned(),
    };
    let mut all: Vec<String> = Vec::new();
    for (frame, prefix) in list(&stacks["frame"]).iter().zip(list(&stacks["prefix"])) {
        let function = at(&frames["func"], frame);
        let name = text(at(&functions["name"], function));
        let resource = text(at(&thread["resourceTable"]["name"], at(&functions["resource"], function)));
        let place = (at(&frames["line"], frame), at(&frames["column"], frame));
        let caller = prefix.as_u64().map_or("", |prefix| &all[usize::try_from(prefix).unwrap()]);
        let stack = format!("{caller};{name} {resource}:{}:{}", place.0, place.1);
        all.push(stack);
    }
    all
}

/// By thread: the times and stacks of samples, in order of time.
pub(crate) fn samples(profile: &Value) -> BTreeMap<u64, Vec<(i64, String)>> {
    let (base, mut all) = (first_us(profile), BTreeMap::<_, Vec<_>>::new());
    for thread in list(&profile["threads"]) {
        let (stacks, samples) = (stacks(profile, thread), &thread["samples"]);
        assert_eq!(samples["length"], list(&samples["stack"]).len());
        let rows = list(&samples["stack"]).iter().zip(list(&samples["time"]));
        let of_thread = all.entry(thread["tid"].as_u64().unwrap()).or_default();
        of_thread.extend(rows.map(|(stack, time)| {
            (us(time) - base, stacks[usize::try_from(stack.as_u64().unwrap()).unwrap()].clone())
        }));
    }
    all.values_mut().for_each(|samples| samples.sort());
    all
}

#[test]
fn every_thread_has_the_samples_that_cpython_gives_it() {
    let mut compared = 0;
    for name in names() {
        let (ours, theirs) = (samples(&exported(&name)), samples(&recorded(&name, "gecko.json")));
        assert_eq!(ours.keys().collect::<Vec<_>>(), theirs.keys().collect::<Vec<_>>(), "{name}");
        for (thread, ours) in &ours {
            assert!(*ours == theirs[thread], "{name}, thread {thread}");
            compared += ours.len();
        }
    }
    assert!(compared > 80_000, "{compared}");
}

/// The names, starts and ends of a thread's markers, without those of instructions, and without those of CPUs unless
/// requested.
fn markers(profile: &Value, thread: &Value, with_cpus: bool) -> Vec<(String, i64, i64)> {
    let (base, markers) = (first_us(profile), &thread["markers"]);
    let mut all = Vec::new();
    for (index, data) in list(&markers["data"]).iter().enumerate() {
        let name = at(&profile["shared"]["stringArray"], &markers["name"][index]).as_str().unwrap();
        let kind = data["type"].as_str().unwrap();
        if kind != "Opcode" && (with_cpus || !kind.ends_with("CPU")) {
            assert_eq!(kind, name.replace(' ', ""));
            let (start, end) = (us(&markers["startTime"][index]), us(&markers["endTime"][index]));
            all.push((name.to_owned(), start - base, end - base));
        }
    }
    all.sort();
    all
}

#[test]
fn markers_are_those_of_cpython_where_it_is_right() {
    let mut compared = 0;
    for name in names() {
        let (ours, theirs) = (exported(&name), recorded(&name, "gecko.json"));
        let threads = list(&theirs["threads"]);
        if list(&ours["threads"]).len() != threads.len() {
            assert!(name.contains("subinterp"), "{name}");
            continue;
        }
        let ends = threads.iter().flat_map(|thread| list(&thread["markers"]["endTime"]).last().map(us));
        let last = ends.collect::<BTreeSet<_>>();
        assert!(last.len() <= 1, "{name}: open markers end at the same time: {last:?}");
        let last = last.first().map(|last| last - first_us(&theirs));
        for (our_thread, thread) in list(&ours["threads"]).iter().zip(threads) {
            assert_eq!(our_thread["tid"], thread["tid"], "{name}");
            assert_eq!(our_thread["isMainThread"], thread["isMainThread"], "{name}");
            let knows_cpus = list(&our_thread["markers"]["category"]).iter().any(|category| category == 5);
            assert_eq!(knows_cpus, name.contains("mode_all") || name.contains("cpu_mode"), "{name}");
            let ours = markers(&ours, our_thread, knows_cpus);
            let theirs = markers(&theirs, thread, knows_cpus);
            assert_eq!(ours.len(), theirs.len(), "{name}");
            for (ours, theirs) in ours.iter().zip(&theirs) {
                let is_open_there = Some(theirs.2) == last;
                assert_eq!((&ours.0, ours.1), (&theirs.0, theirs.1), "{name}");
                assert!(ours.2 == theirs.2 || is_open_there, "{name}: {ours:?} {theirs:?}");
            }
            compared += ours.len();
        }
    }
    assert!(compared > 2_000, "{compared}");
}

#[test]
fn times_do_not_run_backwards_and_the_interval_is_that_of_the_file() {
    for name in names() {
        let (profile, info) = (exported(&name), recorded(&name, "info.json"));
        let interval = profile["meta"]["interval"].as_f64().unwrap();
        let expected = info["info"]["sample_interval_us"].as_f64().unwrap() / 1000.0;
        assert!((interval - expected).abs() < 1e-9, "{name}");
        for thread in list(&profile["threads"]) {
            let (times, markers) = (list(&thread["samples"]["time"]), &thread["markers"]);
            assert!(times.iter().map(us).is_sorted(), "{name}");
            let (starts, ends) = (list(&markers["startTime"]), list(&markers["endTime"]));
            assert!(starts.iter().map(us).is_sorted(), "{name}");
            assert!(starts.iter().zip(ends).all(|(start, end)| us(start) <= us(end)), "{name}");
            for column in ["data", "name", "startTime", "endTime", "phase", "category"] {
                assert_eq!(list(&markers[column]).len(), markers["length"], "{name} {column}");
            }
        }
    }
}

#[test]
fn interpreters_have_lanes_of_their_own() {
    let profile = exported("09_subinterp");
    let threads: BTreeSet<_> =
        list(&profile["threads"]).iter().map(|thread| thread["name"].as_str().unwrap()).collect();
    assert_eq!(threads.len(), list(&profile["threads"]).len());
    assert!(threads.contains("Thread-6740"), "{threads:?}");
    assert!(threads.iter().any(|name| name.contains("(interpreter ")), "{threads:?}");
}

#[test]
fn instructions_are_markers_named_as_in_the_recorded_version() {
    let profile = exported("33_attach_opcodes_blocking");
    let opcodes: Value = serde_json::from_slice(&read_corpus("tachyon/opcodes/opcodes_3.15.json")).unwrap();
    let known = opcodes.to_string();
    let mut found = BTreeSet::new();
    for thread in list(&profile["threads"]) {
        for data in list(&thread["markers"]["data"]).iter().filter(|data| data["type"] == "Opcode") {
            let name = data["opname"].as_str().unwrap();
            assert!(known.contains(&format!("\"{name}\"")), "{name}");
            assert!(data["line"].is_u64() && data["function"].is_string(), "{data}");
            found.insert(name.to_owned());
        }
    }
    assert!(found.len() > 5, "{found:?}");
    assert_eq!(profile["meta"]["markerSchema"][0]["name"], "Opcode");
}

#[test]
fn firefox_profiler_loads_every_lane_with_its_markers() {
    let scratch = Scratch::new();
    for name in ["02_cpu_zstd", "09_subinterp", "33_attach_opcodes_blocking"] {
        let profile = exported(name);
        let file = scratch.write("profile.json", profile.to_string().as_bytes());
        let Some(loader) = peer("firefox-profiler") else { return };
        let answer: Value = serde_json::from_str(&loader.stdout(&["load", &file.to_string_lossy()])).unwrap();
        let found = answer["loaded"]["threads"].as_array().unwrap_or_else(|| panic!("{name}: {answer}"));
        let lane = |name: &Value, tid: &Value, markers: &Value| {
            (name.as_str().unwrap().to_owned(), tid.as_u64().unwrap(), markers.as_u64().unwrap())
        };
        let mut found: Vec<_> = found
            .iter()
            .map(|thread| lane(&thread["name"], &thread["tid"], &thread["markerCount"]))
            .collect();
        let threads = list(&profile["threads"]).iter();
        let mut expected: Vec<_> = threads
            .map(|thread| lane(&thread["name"], &thread["tid"], &thread["markers"]["length"]))
            .collect();
        found.sort();
        expected.sort();
        assert_eq!(found, expected, "{name}");
    }
}

#[test]
fn samples_without_times_last_their_periods_and_keep_their_counts() {
    let (mut out, mut tables) = (Vec::new(), Tables::default());
    let function = tables.intern_string(b"caf\xe9").unwrap();
    let frame = tables.intern_frame(&borehole_model::Frame::named(function)).unwrap();
    let stack = tables.intern_stack(None, frame).unwrap();
    let segment = Segment { period_ns: Some(10_000_000), ..Segment::default() };
    let context = Context { tables: &tables, segment: &segment };
    let mut exporter = exporter(&mut out);
    exporter.segment(context).unwrap();
    for (count, status) in [(1 << 40, Some(Status(1))), (2, Some(Status(0))), (1, None)] {
        let sample = Sample { stack: Some(stack), count, status, ..Sample::default() };
        assert!(exporter.sample(context, &sample).unwrap().is_continue());
    }
    exporter.finish(&tables).unwrap();
    assert_eq!(exporter.losses().to_string(), "bytes outside UTF-8 (in names) dropped: 1");
    drop(exporter);
    let profile: Value = serde_json::from_slice(&out).unwrap();
    let samples = &profile["threads"][0]["samples"];
    assert_eq!(samples["weight"], serde_json::json!([1_u64 << 40, 2, 1]));
    assert_eq!(samples["time"], serde_json::json!([0, 10_995_116_277_760_u64, 10_995_116_277_780_u64]));
    assert_eq!(profile["shared"]["stringArray"][1], "caf\u{fffd}");
    assert_eq!(profile["meta"]["product"], "Borehole");
}

#[test]
fn samples_without_a_period_last_that_of_the_document() {
    let (mut out, mut tables) = (Vec::new(), Tables::default());
    let function = tables.intern_string(b"f").unwrap();
    let frame = tables.intern_frame(&borehole_model::Frame::named(function)).unwrap();
    let stack = Some(tables.intern_stack(None, frame).unwrap());
    let mut exporter = exporter(&mut out);
    for (index, period_ns) in (0..).zip([Some(10_000_000), None, None]) {
        let segment = Segment { index, period_ns, ..Segment::default() };
        let at = Context { tables: &tables, segment: &segment };
        exporter.segment(at).unwrap();
        let _ = exporter.sample(at, &Sample { stack, count: 1, ..Sample::default() }).unwrap();
    }
    exporter.finish(&tables).unwrap();
    drop(exporter);
    let profile: Value = serde_json::from_slice(&out).unwrap();
    assert_eq!(profile["threads"][0]["samples"]["time"], serde_json::json!([0, 10, 20]));
}

#[test]
fn samples_without_times_begin_at_the_first_known_time() {
    let (mut out, mut tables) = (Vec::new(), Tables::default());
    let function = tables.intern_string(b"f").unwrap();
    let frame = tables.intern_frame(&borehole_model::Frame::named(function)).unwrap();
    let stack = Some(tables.intern_stack(None, frame).unwrap());
    let mut exporter = exporter(&mut out);
    for (thread, times_ns) in [
        (Some(1), [Some(70_000_000), Some(75_000_000)]),
        (Some(2), [None, None]),
        (Some(3), [None, Some(90_000_000)]),
    ] {
        let has_times = times_ns[1].is_some();
        let segment = Segment { has_times, period_ns: Some(5_000_000), ..Segment::default() };
        let at = Context { tables: &tables, segment: &segment };
        exporter.segment(at).unwrap();
        for time_ns in times_ns {
            let sample = Sample { stack, count: 1, thread, time_ns, ..Sample::default() };
            let _ = exporter.sample(at, &sample).unwrap();
        }
    }
    exporter.finish(&tables).unwrap();
    drop(exporter);
    let profile: Value = serde_json::from_slice(&out).unwrap();
    let times: Vec<_> = list(&profile["threads"]).iter().map(|thread| &thread["samples"]["time"]).collect();
    assert_eq!(times, [&serde_json::json!([0, 5]), &serde_json::json!([0, 5]), &serde_json::json!([15, 20])]);
}

#[test]
fn samples_of_another_period_than_that_of_the_document_are_counted_and_those_of_an_unknown_one_are_not() {
    let (mut out, tables) = (Vec::new(), Tables::default());
    let mut exporter = exporter(&mut out);
    for period_ns in [Some(1_000_000), Some(10_000_000), None] {
        let segment = Segment { period_ns, ..Segment::default() };
        let at = Context { tables: &tables, segment: &segment };
        exporter.segment(at).unwrap();
        let _ = exporter.sample(at, &Sample { count: 3, ..Sample::default() }).unwrap();
    }
    exporter.finish(&tables).unwrap();
    let losses = exporter.losses().to_string();
    assert!(losses.contains("sampling periods dropped: 3"), "{losses}");
}
