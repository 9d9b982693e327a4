//! `speedscope`, compared with files of other writers, with the viewer's own importer and schema, and with itself.

#![allow(clippy::unwrap_used, reason = "tests fail by panics")]

use std::collections::BTreeMap;
use std::io::Cursor;

use borehole_formats::speedscope::{ExportOptions, Exporter, Utf8Errors, import};
use borehole_formats::{Error, Export as _, Limits, ReadOptions, tachyon};
use borehole_model::{Context, Frame, LaneId, ProfileSink as _, Recovery, Sample, Segment, Tables};
use borehole_testkit::peers::{SpeedscopeProfile, speedscope_import, speedscope_schema_errors};
use borehole_testkit::{Scratch, read_corpus};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::play::{
    Collect, PlainFrame, PlainSample, PlainSegment, any_samples, collected, named, play, play_inputs,
};

const CONVERTED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../corpus/rbt/expected/conv");

fn read_with(bytes: &[u8], options: &ReadOptions) -> Result<(Collect, Recovery), Error> {
    collected(|tables, sink| import(bytes, options, tables, sink))
}

fn read(bytes: &[u8]) -> Collect {
    read_with(bytes, &ReadOptions::default()).unwrap().0
}

fn exporter(bytes: &mut Vec<u8>) -> Exporter<&mut Vec<u8>> {
    Exporter::new(bytes, ExportOptions::default(), || Ok(Box::new(Cursor::new(Vec::new()))))
}

fn write(segments: &[PlainSegment]) -> Vec<u8> {
    let mut bytes = Vec::new();
    play(segments, &mut exporter(&mut bytes));
    bytes
}

fn sample(names_leaf_first: &[&str], count: u64) -> PlainSample {
    let frames_leaf_first = names_leaf_first.iter().map(|name| named(name)).collect();
    PlainSample { frames_leaf_first, count, ..PlainSample::default() }
}

fn at(time_ns: i64, names_leaf_first: &[&str]) -> PlainSample {
    PlainSample { time_ns: Some(time_ns), ..sample(names_leaf_first, 1) }
}

fn segment(period_ns: Option<u64>, samples: Vec<PlainSample>) -> PlainSegment {
    PlainSegment { period_ns, samples, ..PlainSegment::default() }
}

/// A profile of frames `a`, `b`, `c` with the given members.
fn document(profile: &Value) -> Vec<u8> {
    let frames = json!([{"name": "a"}, {"name": "b", "file": "b.php", "line": 7, "col": 3}, {"name": "c"}]);
    json!({"shared": {"frames": frames}, "profiles": [profile]}).to_string().into_bytes()
}

fn names(sample: &PlainSample) -> Vec<&str> {
    sample.frames_leaf_first.iter().map(|frame| &*frame.function).collect()
}

#[test]
fn every_file_of_reli_holds_as_many_samples_as_reli_read() {
    let manifest = std::fs::read(format!("{CONVERTED}/../../MANIFEST.json")).unwrap();
    let manifest: Value = serde_json::from_slice(&manifest).unwrap();
    let mut files = 0;
    for entry in manifest["files"].as_array().unwrap() {
        let Some(file) = entry["converters"]["speedscope"]["file"].as_str() else { continue };
        let collect = read(&std::fs::read(format!("{CONVERTED}/../../{file}")).unwrap());
        if entry["strict"]["error"].is_null() {
            assert_eq!(collect.count(), entry["strict"]["samples"].as_u64().unwrap(), "{file}");
        }
        files += 1;
    }
    assert!(files > 55, "{files} files");
}

#[test]
fn combined_lanes_are_one_profile_of_all_their_samples() {
    let of = |process, thread, time_ns| PlainSample {
        process: Some(process),
        thread: Some(thread),
        ..at(time_ns, &["leaf", "main"])
    };
    // The processes ran at the same times.
    let first = segment(Some(1000), vec![of(7, 7, 0), of(7, 8, 0), of(7, 7, 1000)]);
    let second = segment(Some(3000), vec![of(9, 9, 500), sample(&["other"], 2)]);
    let mut bytes = Vec::new();
    let options = ExportOptions { is_combined: true, ..ExportOptions::default() };
    let mut exporter = Exporter::new(&mut bytes, options, || Ok(Box::new(Cursor::new(Vec::new()))));
    play(&[first, second], &mut exporter);
    let lost = exporter.losses().to_string();
    drop(exporter);
    assert_eq!(lost, "timestamps dropped: 4, process ids dropped: 4, thread ids dropped: 4");
    let document: Value = serde_json::from_slice(&bytes).unwrap();
    let profiles = document["profiles"].as_array().unwrap();
    assert_eq!((profiles.len(), &profiles[0]["name"]), (1, &json!("all samples")));
    assert_eq!(profiles[0]["weights"], json!([6000, 6000]));
    assert_eq!(read(&bytes).count(), 6);
}

#[test]
fn frames_keep_file_line_and_column() {
    let profile = json!({"type": "sampled", "name": "x", "unit": "none", "startValue": 0, "endValue": 4,
        "samples": [[0, 1], [], [2]], "weights": [2, 1, 1]});
    let collect = read(&document(&profile));
    let samples = &collect.segments[0].samples;
    let b = PlainFrame { file: Some("b.php".into()), line: Some(7), column: Some(2), ..named("b") };
    assert_eq!(samples[0].frames_leaf_first, [b, named("a")]);
    assert_eq!(samples.iter().map(|sample| sample.count).collect::<Vec<_>>(), [2, 1, 1]);
    assert_eq!(samples[1].frames_leaf_first, []);
    assert_eq!(collect.segments[0].metadata, [("profile".to_owned(), "x".to_owned())]);
}

#[test]
fn regular_times_become_counts_and_irregular_ones_values() {
    let times = |weights: Value, unit: &str| {
        let profile = json!({"type": "sampled", "name": "", "unit": unit, "startValue": 5, "endValue": 9,
            "samples": [[0], [1], [0]], "weights": weights});
        let segment = read(&document(&profile)).segments.remove(0);
        let samples =
            segment.samples.iter().map(|sample| (sample.count, sample.time_ns, sample.values.clone()));
        (segment.period_ns, samples.collect::<Vec<_>>(), segment.value_types)
    };
    let second = 1_000_000_000;
    assert_eq!(
        times(json!([0.01, 0.03, 0.01]), "seconds"),
        (
            Some(10_000_000),
            vec![
                (1, Some(5 * second), vec![]),
                (3, Some(5 * second + 10_000_000), vec![]),
                (1, Some(5 * second + 40_000_000), vec![]),
            ],
            vec![]
        )
    );
    let (period, samples, types) = times(json!([1000, 1500, 70]), "microseconds");
    assert_eq!((period, types), (None, vec![("wall".to_owned(), "nanoseconds".to_owned())]));
    assert_eq!(
        samples,
        [
            (1, Some(5_000), vec![1_000_000]),
            (1, Some(1_005_000), vec![1_500_000]),
            (1, Some(2_505_000), vec![70_000])
        ]
    );
    let (_, samples, types) = times(json!([1000, 1500, 70]), "bytes");
    assert_eq!(types, [("weight".to_owned(), "bytes".to_owned())]);
    assert_eq!(samples[1], (1, None, vec![1500]));
}

#[test]
fn events_become_a_sample_for_each_duration() {
    let event = |kind: &str, frame: u32, at: u32| json!({"type": kind, "frame": frame, "at": at});
    let events = [
        event("O", 0, 10),
        event("O", 1, 10),
        event("C", 1, 25),
        event("O", 2, 30),
        event("C", 2, 40),
        event("C", 0, 41),
    ];
    let profile = json!({"type": "evented", "name": "e", "unit": "nanoseconds", "startValue": 3, "endValue": 50,
        "events": events});
    let collect = read(&document(&profile));
    let samples = &collect.segments[0].samples;
    let found: Vec<_> =
        samples.iter().map(|sample| (names(sample), sample.time_ns.unwrap(), sample.values[0])).collect();
    assert_eq!(
        found,
        [
            (vec![], 3, 7),
            (vec!["b", "a"], 10, 15),
            (vec!["a"], 25, 5),
            (vec!["c", "a"], 30, 10),
            (vec!["a"], 40, 1),
            (vec![], 41, 9),
        ]
    );
}

#[test]
fn profiles_may_come_before_the_frames() {
    let text = br#"{"profiles":[{"samples":[[1,0]],"type":"sampled","weights":[3],"unit":"none"}],
        "exporter":{"any":["thing"]},"shared":{"frames":[{"name":"x"},{"name":"y"}]}}"#;
    let collect = read(text);
    assert_eq!(names(&collect.segments[0].samples[0]), ["x", "y"]);
    assert_eq!(collect.count(), 3);
}

#[test]
fn bad_documents_are_reported_with_kind_and_line() {
    let cases: [(&str, &str); 8] = [
        ("", "truncated: EOF while parsing a value, column 0 (speedscope, at line 1)"),
        ("[]", "invalid type: sequence, expected a speedscope document, column 1 (speedscope, at line 1)"),
        ("{\n\"shared\":{\"frames\":[]}}", "missing field `profiles`, column 23 (speedscope, at line 2)"),
        (
            "{\"shared\":{\"frames\":[{\"name\":\"a\"}]},\n\n\"profiles\":[{\"samples\":[[0,0",
            "truncated: EOF while parsing a list, column 28 (speedscope, at line 3)",
        ),
        (
            "{\"shared\":{\"frames\":[{\"name\":\"a\"}]},\"profiles\":[{\"samples\":[[0,1]]}]}",
            "expected a frame below 1, found 1, column 65 (speedscope, at line 1)",
        ),
        (
            "{\"profiles\":[{\"samples\":[[0,4]],\"weights\":[1]}],\"shared\":{\"frames\":[{\"name\":\"a\"}]}}",
            "expected a frame below 1, found 4 (speedscope)",
        ),
        (
            "{\"shared\":{\"frames\":[]},\"profiles\":[{\"samples\":[[]],\"weights\":[]}]}",
            "expected 1 weights in profile 0, found 0 (speedscope)",
        ),
        (
            "{\"shared\":{\"frames\":[{\"name\":\"a\"}]},\"profiles\":[{\"events\":[{\"type\":\"C\",\"frame\":0,\"at\":1}]}]}",
            "expected a frame to begin, found the end of frame 0, column 89 (speedscope, at line 1)",
        ),
    ];
    for (text, message) in cases {
        let error = read_with(text.as_bytes(), &ReadOptions::default()).unwrap_err();
        assert_eq!(error.to_string(), message, "{text}");
        assert_eq!(error.is_truncated(), message.starts_with("truncated"));
    }
}

#[test]
fn a_document_above_the_limit_is_refused() {
    let bytes = write(&[segment(None, vec![sample(&["a"], 3)])]);
    let limits = Limits { memory_bytes: 100 << 10, ..Limits::default() };
    assert!(read_with(&bytes, &ReadOptions { limits, ..ReadOptions::default() }).is_ok());
    let weights = vec!["1"; 10_000].join(",");
    let bytes = format!("{{\"profiles\":[{{\"weights\":[{weights}]}}]}}");
    let error = read_with(bytes.as_bytes(), &ReadOptions { limits, ..ReadOptions::lenient() }).unwrap_err();
    assert_eq!(error.to_string(), "needs more than 102400 bytes of memory (speedscope, at line 1)");
}

#[test]
fn every_prefix_and_every_changed_byte_is_survived() {
    let reli = std::fs::read(format!("{CONVERTED}/native.rbt.speedscope.json")).unwrap();
    let ours = write(&[segment(Some(10), vec![sample(&["a", "b"], 3), at(7, &["c"]), at(9, &["c"])])]);
    for bytes in [&reli, &ours] {
        let whole = read(bytes).count();
        for end in 0..bytes.len() {
            let _ = read_with(&bytes[..end], &ReadOptions::default());
            let (collect, recovery) = read_with(&bytes[..end], &ReadOptions::lenient()).unwrap();
            assert!(collect.count() <= whole, "{end}");
            assert_eq!(collect.count(), recovery.samples);
        }
        let mut changed = bytes.clone();
        for place in 0..bytes.len() {
            for bit in 0..8 {
                changed[place] = bytes[place] ^ (1 << bit);
                let _ = read_with(&changed, &ReadOptions::default());
                let _ = read_with(&changed, &ReadOptions::lenient());
            }
            changed[place] = bytes[place];
        }
    }
}

#[test]
fn a_truncated_document_yields_the_data_before_the_cut() {
    let profile = json!({"unit": "none", "weights": [2, 1, 1], "samples": [[0, 1], [], [2]]});
    let mut bytes = document(&profile);
    // serde_json sorts the members: `profiles` comes before `shared`, so both are swapped by hand.
    let text = String::from_utf8(bytes).unwrap();
    let (profiles, shared) = text.split_once(",\"shared\"").unwrap();
    bytes = format!("{{\"shared\"{},{}", &shared[..shared.len() - 1], &profiles[1..]).into_bytes();
    let cut = &bytes[..bytes.iter().rposition(|&byte| byte == b'w').unwrap()];
    let (collect, recovery) = read_with(cut, &ReadOptions::lenient()).unwrap();
    assert_eq!(collect.count(), 0);
    assert_eq!(recovery.warnings.len(), 2);
    assert!(recovery.warnings[0].message.contains("(line 1)"), "{:?}", recovery.warnings);
}

/// The `weights` of the profile, as written.
fn weights(bytes: &[u8], profile: usize) -> (String, Vec<u64>) {
    let value: Value = serde_json::from_slice(bytes).unwrap();
    let profile = &value["profiles"][profile];
    let weights = profile["weights"].as_array().unwrap().iter().map(|weight| weight.as_u64().unwrap());
    (profile["unit"].as_str().unwrap().to_owned(), weights.collect())
}

#[test]
fn weights_are_times_or_values_or_counts() {
    let timed = segment(Some(10), vec![at(100, &["a"]), at(130, &["a"]), at(145, &["b"]), at(200, &["a"])]);
    // A sample that begins a period or more after the end of the previous one has an entry without a stack before it.
    let weights_of_timed = vec![10, 20, 10, 10, 50, 10];
    assert_eq!(weights(&write(&[timed]), 0), ("nanoseconds".to_owned(), weights_of_timed));
    let unknown = segment(None, vec![at(100, &["a"]), at(130, &["a"]), at(145, &["b"]), at(200, &["a"])]);
    assert_eq!(weights(&write(&[unknown]), 0), ("nanoseconds".to_owned(), vec![45, 55, 55]));
    let lone = segment(None, vec![at(100, &["a"])]);
    assert_eq!(weights(&write(&[lone]), 0), ("nanoseconds".to_owned(), vec![1]));
    let periods = segment(Some(10), vec![sample(&["a"], 2), sample(&["a"], 3), sample(&["b"], 1)]);
    assert_eq!(weights(&write(&[periods]), 0), ("nanoseconds".to_owned(), vec![50, 10]));
    let counts = segment(None, vec![sample(&["a"], 2), sample(&["a"], 3), sample(&["b"], 1)]);
    assert_eq!(weights(&write(&[counts]), 0), ("none".to_owned(), vec![5, 1]));
    let values = PlainSegment {
        value_types: vec![("objects".into(), "count".into()), ("space".into(), "bytes".into())],
        samples: vec![PlainSample { values: vec![1, 64], ..sample(&["a"], 1) }],
        ..PlainSegment::default()
    };
    assert_eq!(weights(&write(&[values]), 0), ("bytes".to_owned(), vec![64]));
}

#[test]
fn stacks_with_equal_text_are_one_entry() {
    let at_offset = |offset| PlainSample {
        frames_leaf_first: vec![PlainFrame {
            native: Some(("libphp.so".into(), Some(offset))),
            ..named("zend_execute")
        }],
        count: 2,
        ..PlainSample::default()
    };
    let bytes = write(&[segment(None, vec![at_offset(1), at_offset(9)])]);
    assert_eq!(weights(&bytes, 0).1, [4]);
}

#[test]
fn mixed_periods_and_inputs_weigh_each_sample_by_its_own() {
    let segments = [
        segment(Some(10), vec![sample(&["a"], 3)]),
        segment(Some(7), vec![sample(&["a"], 2), sample(&["b"], 2)]),
    ];
    let bytes = write(&segments);
    assert_eq!(weights(&bytes, 0).1, [44, 14]);
    let counts: Vec<_> = read(&bytes).samples().map(|sample| sample.count).collect();
    assert_eq!(counts, [5, 2]);
}

#[test]
fn invalid_utf8_is_left_out_replaced_or_refused() {
    let run = |utf8_errors| {
        let mut tables = Tables::default();
        let name = tables.intern_string(b"caf\xe9").unwrap();
        let frame = tables.intern_frame(&Frame::named(name)).unwrap();
        let stack = Some(tables.intern_stack(None, frame).unwrap());
        let segment = Segment::default();
        let mut bytes = Vec::new();
        let options = ExportOptions { utf8_errors, ..ExportOptions::default() };
        let mut exporter = Exporter::new(&mut bytes, options, || Ok(Box::new(Cursor::new(Vec::new()))));
        let at = Context { tables: &tables, segment: &segment };
        exporter.segment(at).unwrap();
        let _ = exporter.sample(at, &Sample { stack, count: 1, ..Sample::default() }).unwrap();
        exporter.finish(&tables)?;
        let losses = exporter.losses().to_string();
        Ok::<_, std::io::Error>((
            read(&bytes).segments[0].samples[0].frames_leaf_first[0].function.clone(),
            losses,
        ))
    };
    let losses = "bytes outside UTF-8 (in names) dropped: 1".to_owned();
    assert_eq!(run(Utf8Errors::Ignore).unwrap(), ("caf".to_owned(), losses.clone()));
    assert_eq!(run(Utf8Errors::Substitute).unwrap(), ("caf\u{fffd}".to_owned(), losses));
    assert_eq!(run(Utf8Errors::Fail).unwrap_err().kind(), std::io::ErrorKind::InvalidData);
}

/// The samples as the format holds them, with equal neighbours of a lane joined, unless a period or more is between them.
fn joined(samples: &[PlainSample], period: Option<u64>) -> Vec<PlainSample> {
    let mut tracks: Vec<Vec<PlainSample>> = Vec::new();
    let mut ends: Vec<i128> = Vec::new();
    for sample in samples {
        let mut sample = sample.clone();
        (sample.labels, sample.status) = (Vec::new(), None);
        for frame in &mut sample.frames_leaf_first {
            if let Some((module, _)) = frame.native.take() {
                frame.file = frame.file.take().or(Some(module));
            }
        }
        let lane = |other: &PlainSample| (other.process, other.thread, other.interpreter);
        let period = i128::from(period.unwrap_or(0));
        let (time, lasts) = (i128::from(sample.time_ns.unwrap_or(0)), i128::from(sample.count) * period);
        match tracks.iter().position(|track| lane(&track[0]) == lane(&sample)) {
            None => {
                tracks.push(vec![sample]);
                ends.push(time + lasts);
            }
            Some(place) => {
                let (track, end) = (&mut tracks[place], &mut ends[place]);
                let is_apart = sample.time_ns.is_some() && period > 0 && time - *end >= period;
                *end = if is_apart { time } else { *end } + lasts;
                match track.last_mut().unwrap() {
                    last if last.frames_leaf_first == sample.frames_leaf_first && !is_apart => {
                        last.count = last.count.saturating_add(sample.count);
                    }
                    _ => track.push(sample),
                }
            }
        }
    }
    tracks.concat()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a_profile_survives_a_round_trip(
        mut samples in any_samples(),
        period in proptest::option::of(1..1_000_000_u64),
        gaps in proptest::option::of(proptest::collection::vec(1..1_000_000_i64, 12)),
    ) {
        let mut time = -500;
        for (sample, gap) in samples.iter_mut().zip(gaps.iter().flatten()) {
            sample.time_ns = Some(time);
            time += gap;
        }
        let collect = read(&write(&[segment(period, samples.clone())]));
        let found: Vec<_> = collect.samples().cloned().collect();
        prop_assert_eq!(&found, &joined(&samples, period));
        for read in &collect.segments {
            if !read.samples.is_empty() {
                prop_assert_eq!(read.period_ns, period);
                prop_assert_eq!(read.has_times, gaps.is_some());
            }
        }
        // A read file is written to the same bytes.
        let bytes = write(&collect.segments);
        prop_assert_eq!(read(&bytes).samples().cloned().collect::<Vec<_>>(), found);
    }

    #[test]
    fn any_text_is_survived(text in "[\\[\\]{}:,\"a-z0-9 .-]{0,60}") {
        let _ = read_with(text.as_bytes(), &ReadOptions::lenient());
    }
}

/// The name, the unit, the weight, and the weight of each leaf function.
type Shown = (String, String, u64, BTreeMap<String, u64>);

/// The result of speedscope's own importer for a file that its schema accepts. `None` if speedscope is skipped.
fn viewer(bytes: &[u8]) -> Option<Vec<Shown>> {
    let scratch = Scratch::new();
    let file = scratch.write("profile.speedscope.json", bytes);
    assert_eq!(speedscope_schema_errors(&file)?, [""; 0]);
    let import = speedscope_import(&file)?.unwrap();
    let whole = |weight: f64| format!("{weight}").parse().unwrap();
    let row = |profile: SpeedscopeProfile| {
        let own = profile.self_weights.into_iter().map(|(name, weight)| (name, whole(weight)));
        (profile.name, profile.unit, whole(profile.total_weight), own.collect())
    };
    Some(import.profiles.into_iter().map(row).collect())
}

fn row(name: &str, unit: &str, total: u64, own: &[(&str, u64)]) -> Shown {
    let own = own.iter().map(|(name, weight)| ((*name).to_owned(), *weight)).collect();
    (name.to_owned(), unit.to_owned(), total, own)
}

#[test]
fn the_viewer_reads_our_files() {
    let of = |process, sample| PlainSample { process: Some(process), ..sample };
    let timed = PlainSegment {
        has_times: true,
        samples: vec![
            of(7, at(100, &["query", "<main>"])),
            of(8, at(120, &["<main>"])),
            of(7, at(150, &["query", "<main>"])),
            of(7, at(190, &["<main>"])),
        ],
        ..segment(Some(30), vec![])
    };
    let Some(profiles) = viewer(&write(&[timed])) else { return };
    let expected = [
        // The second sample is late by less than a period, the third by a whole one.
        row("process 7", "nanoseconds", 120, &[("<main>", 30), ("query", 60)]),
        row("process 8", "nanoseconds", 30, &[("<main>", 30)]),
    ];
    assert_eq!(profiles, expected);
    let counted = segment(None, vec![sample(&["a", "b"], 3), sample(&[], 2), sample(&["b"], 1)]);
    let expected = row("all samples", "none", 6, &[("a", 3), ("b", 1)]);
    assert_eq!(viewer(&write(&[counted])), Some(vec![expected]));
    assert_eq!(viewer(&write(&[])).unwrap()[0].2, 0);
}

#[test]
fn the_viewer_and_we_read_the_same_in_a_file_of_reli() {
    let bytes = read_corpus("rbt/expected/conv/multi_segment.rbt.speedscope.json");
    let Some(profiles) = viewer(&bytes) else { return };
    let collect = read(&bytes);
    let mut own = BTreeMap::new();
    for sample in collect.samples() {
        for frame in &sample.frames_leaf_first {
            own.entry(frame.function.clone()).or_insert(0);
        }
        *own.get_mut(&sample.frames_leaf_first[0].function).unwrap() += sample.count;
    }
    assert_eq!((profiles[0].2, &profiles[0].3), (collect.count(), &own));
}

#[test]
fn moved_samples_are_counted() {
    let losses = |inputs: &[&[PlainSegment]]| {
        let mut bytes = Vec::new();
        let mut exporter = exporter(&mut bytes);
        play_inputs(inputs, &mut exporter);
        let losses = exporter.losses().to_string();
        drop(exporter);
        (losses, read(&bytes).samples().map(|sample| sample.time_ns.unwrap()).collect::<Vec<_>>())
    };
    let many = |count, sample| PlainSample { count, ..sample };
    let apart = segment(Some(10), vec![at(100, &["a"]), many(5, at(130, &["b"])), at(145, &["a"])]);
    assert_eq!(losses(&[std::slice::from_ref(&apart)]), (String::new(), vec![100, 130, 145]));
    let run = segment(Some(10), vec![at(100, &["a"]), many(5, at(115, &["a"])), at(145, &["b"])]);
    assert_eq!(losses(&[&[run]]), ("exact times of samples dropped: 5".to_owned(), vec![100, 145]));
    // Times in the format cannot go backwards, but our own member keeps them.
    let backwards = segment(Some(10), vec![at(100, &["a"]), at(50, &["b"]), at(60, &["c"]), at(120, &["d"])]);
    assert_eq!(losses(&[&[backwards]]), (String::new(), vec![100, 50, 60, 120]));
    let further = segment(Some(10), vec![at(500, &["a"]), at(520, &["b"])]);
    let moved = "exact times of samples dropped: 2";
    assert_eq!(losses(&[&[apart], &[further]]), (moved.to_owned(), vec![100, 130, 145, 190, 210]));
}

#[test]
fn a_value_below_0_is_counted_as_lost() {
    let valued = |name, value| PlainSample { values: vec![value], ..sample(&[name], 1) };
    let segment = PlainSegment {
        value_types: vec![("alloc".to_owned(), "bytes".to_owned())],
        samples: vec![valued("a", -500), valued("b", 300)],
        ..PlainSegment::default()
    };
    let mut bytes = Vec::new();
    let mut exporter = exporter(&mut bytes);
    play(&[segment], &mut exporter);
    assert_eq!(exporter.losses().to_string(), "measured values dropped: 1");
}

/// A document after it was read and written again.
fn rewritten(bytes: &[u8]) -> Value {
    let (document, losses) = rewritten_with_losses(bytes);
    assert_eq!(losses, "");
    document
}

/// The weights of a profile of another format: for each profile its name and the milliseconds of each leaf.
fn drawn(name: &str) -> Vec<(String, BTreeMap<String, u64>)> {
    let (mut out, mut tables) = (Vec::new(), Tables::default());
    let mut exporter = exporter(&mut out);
    tachyon::import(&read_corpus(name), &ReadOptions::default(), &mut tables, &mut exporter).unwrap();
    exporter.finish(&tables).unwrap();
    drop(exporter);
    let document: Value = serde_json::from_slice(&out).unwrap();
    let of_profile = |profile: &Value| {
        let mut sums = BTreeMap::new();
        let weights = profile["weights"].as_array().unwrap();
        for (stack, weight) in profile["samples"].as_array().unwrap().iter().zip(weights) {
            let Some(leaf) = stack.as_array().unwrap().last() else { continue };
            let name =
                &document["shared"]["frames"][usize::try_from(leaf.as_u64().unwrap()).unwrap()]["name"];
            *sums.entry(name.as_str().unwrap().to_owned()).or_insert(0) += weight.as_u64().unwrap();
        }
        sums.values_mut().for_each(|sum| *sum /= 1_000_000);
        (profile["name"].as_str().unwrap().to_owned(), sums)
    };
    document["profiles"].as_array().unwrap().iter().map(of_profile).collect()
}

#[test]
fn a_sample_lasts_its_period_and_not_until_the_next_one() {
    let profiles = drawn("tachyon/made/cpu_mode.bin");
    assert_eq!(profiles.iter().filter_map(|(_, sums)| sums.get("idle")).sum::<u64>(), 10, "{profiles:?}");
}

#[test]
fn interpreters_are_profiles_of_their_own() {
    let profiles = drawn("tachyon/made/interpreters.bin");
    let totals: Vec<u64> = profiles.iter().map(|(_, sums)| sums.values().sum()).collect();
    assert_eq!(totals, [1000, 1000], "{profiles:?}");
}

/// The stacks of a sampled profile, and the events of another, with the names of their frames.
fn stacks(document: &Value, profile: &Value) -> Vec<String> {
    let frame = |number: &Value| {
        let place = usize::try_from(number.as_u64().unwrap()).unwrap();
        document["shared"]["frames"][place].to_string()
    };
    let stack = |stack: &Value| stack.as_array().unwrap().iter().map(frame).collect();
    let event = |event: &Value| {
        format!("{} {} {:?}", event["type"], frame(&event["frame"]), event["at"].as_f64().unwrap())
    };
    match (profile["samples"].as_array(), profile["events"].as_array()) {
        (Some(samples), None) => samples.iter().map(stack).collect(),
        (None, Some(events)) => events.iter().map(event).collect(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn documents_of_other_writers_survive() {
    for name in ["values-last-stretch", "lanes-two-threads", "values-evented"] {
        let bytes = read_corpus(&format!("speedscope/{name}.speedscope.json"));
        let (before, after): (Value, Value) = (serde_json::from_slice(&bytes).unwrap(), rewritten(&bytes));
        let profiles = |document: &Value| document["profiles"].as_array().unwrap().clone();
        let (document_before, document_after) = (&before, &after);
        for (before, after) in profiles(&before).iter().zip(profiles(&after)) {
            for member in ["type", "name", "unit", "borehole"] {
                assert_eq!(after[member], before[member], "{name} {member}");
            }
            assert_eq!(stacks(document_after, &after), stacks(document_before, before), "{name}");
            let weights = |profile: &Value| {
                profile["weights"].as_array().map(|all| all.iter().map(Value::as_f64).collect::<Vec<_>>())
            };
            assert_eq!(weights(&after), weights(before), "{name}");
            for member in ["startValue", "endValue"] {
                assert_eq!(after[member].as_f64(), before[member].as_f64(), "{name} {member}");
            }
        }
        assert_eq!(profiles(&after).len(), profiles(&before).len(), "{name}");
    }
}

#[test]
fn units_starts_ends_and_names_of_all_kinds_come_back() {
    let sampled = |name: &str, unit: &str, start: Value, end: Value, weights: Value| {
        json!({"type": "sampled", "name": name, "unit": unit, "startValue": start, "endValue": end,
            "samples": [[0], [0], [1]], "weights": weights})
    };
    let profiles = [
        sampled("x", "bytes", json!(7), json!(607), json!([100, 200, 300])),
        sampled("x", "none", json!(0), json!(6), json!([1, 2, 3])),
        sampled("", "seconds", json!(1.5), json!(99), json!([0.01, 0.03, 0.02])),
        sampled("Thread 7 \"a\"", "microseconds", json!(-3), json!(9.25), json!([1.25, 10, 1])),
        sampled("Thread 7 \"a\"", "none", json!(0), json!(3), json!([-1, 2, 2])),
    ];
    let frames = json!([{"name": "a"}, {"name": "b"}]);
    let document = json!({"shared": {"frames": frames}, "profiles": profiles});
    let bytes = document.to_string().into_bytes();
    let mut expected = Value::from(profiles.to_vec());
    let mut found = rewritten_with_losses(&bytes).0["profiles"].clone();
    // The viewer rejects weights below 0.
    assert_eq!(found[4]["weights"].take(), json!([0, 2, 2]));
    expected[4]["weights"] = Value::Null;
    found[4]["endValue"].take();
    expected[4]["endValue"] = Value::Null;
    assert_eq!(found, expected);
}

fn rewritten_with_losses(bytes: &[u8]) -> (Value, String) {
    let (mut out, mut tables) = (Vec::new(), Tables::default());
    let mut exporter = exporter(&mut out);
    import(bytes, &ReadOptions::lenient(), &mut tables, &mut exporter).unwrap();
    exporter.finish(&tables).unwrap();
    let losses = exporter.losses().to_string();
    drop(exporter);
    (serde_json::from_slice(&out).unwrap(), losses)
}

#[test]
fn names_of_profiles_become_threads_with_numbers_and_names() {
    let profile = |name: &str| json!({"name": name, "unit": "none", "samples": [[0]], "weights": [1]});
    let threads = |names: &[&str]| {
        let profiles: Vec<_> = names.iter().map(|name| profile(name)).collect();
        let document = json!({"shared": {"frames": [{"name": "a"}]}, "profiles": profiles});
        let collect = read(document.to_string().as_bytes());
        let lanes: Vec<_> = collect.samples().map(|sample| (sample.process, sample.thread)).collect();
        (lanes, collect.thread_names)
    };
    let number = |place| Some(LaneId::Profile(place).to_u64());
    let (lanes, names) =
        threads(&["Thread 100 \"MainThread\"", "Process 7 Thread 100.1", "same", "same", ""]);
    let reused = Some(LaneId::parse("100.1").unwrap().to_u64());
    assert_eq!(
        lanes,
        [(None, Some(100)), (Some(7), reused), (None, number(2)), (None, number(3)), (None, number(4))]
    );
    let same = |place| (number(place).unwrap(), "same".to_owned());
    assert_eq!(names, [(100, "MainThread".to_owned()), same(2), same(3)]);
    assert_eq!(threads(&["alone"]), (vec![(None, None)], vec![]));
}

#[test]
fn frames_that_are_open_at_the_end_stay_open_until_it() {
    let bytes = read_corpus("speedscope/damaged-evented-cut-off.speedscope.json");
    for options in [ReadOptions::default(), ReadOptions::lenient()] {
        let (collect, recovery) = read_with(&bytes, &options).unwrap();
        let of_a = |sample: &&PlainSample| names(sample) == ["A"];
        let ms: i64 = collect.samples().filter(of_a).map(|sample| sample.values[0] / 1_000_000).sum();
        assert_eq!((ms, recovery.warnings.len()), (80, 1));
        assert!(recovery.warnings[0].message.starts_with("truncated: profile 0"), "{recovery:?}");
    }
}

#[test]
fn unknown_units_and_times_below_zero_are_shown_as_they_are_with_a_note() {
    let noted = |profile: &Value| {
        let (collect, recovery) = read_with(&document(profile), &ReadOptions::default()).unwrap();
        let values = collect.samples().map(|sample| sample.values[0]).collect::<Vec<_>>();
        let note = recovery.notes[0].message.clone();
        (collect.segments[0].value_types[0].clone(), values, note)
    };
    let value_type = |kind: &str, unit: &str| (kind.to_owned(), unit.to_owned());
    let bananas = json!({"unit": "bananas", "samples": [[0], [1]], "weights": [3, -4]});
    let note = "unknown unit in profile 0: \"bananas\"".to_owned();
    assert_eq!(noted(&bananas), (value_type("weight", "bananas"), vec![3, -4], note));
    let negative = json!({"unit": "seconds", "samples": [[0], [1]], "weights": [-1, 2]});
    let (note, second) = ("profile 0 has negative times".to_owned(), 1_000_000_000);
    assert_eq!(noted(&negative), (value_type("wall", "nanoseconds"), vec![-second, 2 * second], note));
}

#[test]
fn odd_documents_are_shown_as_they_are_with_a_warning() {
    let lenient = |profile: &Value| {
        let (collect, recovery) = read_with(&document(profile), &ReadOptions::lenient()).unwrap();
        assert!(read_with(&document(profile), &ReadOptions::default()).is_err(), "{profile}");
        assert_eq!(recovery.warnings.len(), 1, "{profile}");
        let values = collect.samples().map(|sample| (sample.frames_leaf_first.len(), sample.values[0]));
        (collect.segments[0].value_types[0].clone(), values.collect::<Vec<_>>())
    };
    let value_type = |kind: &str, unit: &str| (kind.to_owned(), unit.to_owned());
    let event = |kind: &str, frame: u32, at: i64| json!({"type": kind, "frame": frame, "at": at});
    let events = |events: [Value; 5]| json!({"type": "evented", "unit": "nanoseconds", "events": events});
    let unbalanced =
        [event("O", 0, 0), event("O", 1, 1), event("C", 0, 3), event("O", 2, 3), event("C", 2, 9)];
    assert_eq!(
        lenient(&events(unbalanced)),
        (value_type("wall", "nanoseconds"), vec![(1, 1), (2, 2), (1, 6)])
    );
    let backwards =
        [event("O", 0, 5), event("O", 1, 7), event("C", 1, 6), event("O", 1, 8), event("C", 1, 9)];
    let (_, mut values) = {
        let mut profile = events(backwards);
        profile["events"].as_array_mut().unwrap().push(event("C", 0, 9));
        lenient(&profile)
    };
    values.sort_unstable();
    assert_eq!(values, [(1, 1), (1, 2), (2, 1)]);
}

#[test]
fn each_kind_has_its_profiles_unless_one_is_asked_for() {
    let heap = PlainSegment {
        value_types: vec![("objects".into(), "count".into()), ("space".into(), "bytes".into())],
        samples: vec![PlainSample { values: vec![2, 64], ..sample(&["a"], 1) }],
        ..PlainSegment::default()
    };
    let cpu = PlainSegment {
        value_types: vec![("cpu".into(), "ms".into())],
        samples: vec![PlainSample { values: vec![5], ..at(7, &["b"]) }],
        ..PlainSegment::default()
    };
    let run = |value: Option<&str>| {
        let mut bytes = Vec::new();
        let options = ExportOptions { value: value.map(str::to_owned), ..ExportOptions::default() };
        let mut exporter = Exporter::new(&mut bytes, options, || Ok(Box::new(Cursor::new(Vec::new()))));
        play(&[heap.clone(), cpu.clone()], &mut exporter);
        let losses = exporter.losses().to_string();
        drop(exporter);
        let profiles = serde_json::from_slice::<Value>(&bytes).unwrap()["profiles"].as_array().unwrap().len();
        ((0..profiles).map(|profile| weights(&bytes, profile)).collect::<Vec<_>>(), losses)
    };
    let [space, objects, cpu_time] = [("bytes", 64), ("none", 2), ("milliseconds", 5)]
        .map(|(unit, weight)| (unit.to_owned(), vec![weight]));
    let values = "measured values dropped: 1";
    assert_eq!(run(None), (vec![space, cpu_time.clone()], values.to_owned()));
    let hidden = format!("{values}, samples of other value types dropped: 1");
    assert_eq!(run(Some("objects")), (vec![objects], hidden));
    let hidden = "samples of other value types dropped: 1".to_owned();
    assert_eq!(run(Some("cpu")), (vec![cpu_time], hidden));
}

#[test]
fn times_of_samples_that_weigh_bytes_come_back() {
    let heap = PlainSegment {
        has_times: true,
        value_types: vec![("space".into(), "bytes".into())],
        samples: vec![
            PlainSample { values: vec![64], ..at(-3, &["a"]) },
            PlainSample { values: vec![32], ..at(i64::MAX, &["b"]) },
            PlainSample { values: vec![16], ..at(5, &["a"]) },
        ],
        ..PlainSegment::default()
    };
    let bytes = write(std::slice::from_ref(&heap));
    assert_eq!(weights(&bytes, 0), ("bytes".to_owned(), vec![64, 32, 16]));
    assert_eq!(read(&bytes).segments[0].samples, heap.samples);
}

#[test]
fn states_and_metadata_are_counted_as_lost() {
    for count in 0..3_u64 {
        let stated = PlainSample { status: Some(1), count, ..at(5, &["a"]) };
        let metadata = vec![("host".to_owned(), "a".to_owned()); usize::try_from(count).unwrap()];
        let one = PlainSegment { metadata, ..segment(Some(10), vec![at(0, &["b"]), stated]) };
        let mut bytes = Vec::new();
        let mut exporter = exporter(&mut bytes);
        play(&[one.clone(), one], &mut exporter);
        let losses = exporter.losses();
        let lost = |wanted| losses.iter().find(|&(what, _)| what == wanted).map_or(0, |(_, count)| count);
        assert_eq!([lost("thread states"), lost("metadata entries")], [2 * count; 2], "{losses}");
    }
}
