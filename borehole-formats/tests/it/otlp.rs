//! `otlp` against OpenTelemetry's own classes, and against itself.

use std::io;

use borehole_formats::otlp::{Exporter, import};
use borehole_formats::{Error, Export as _, Limits, ReadOptions};
use borehole_model::{Recovery, Tables};
use borehole_testkit::Scratch;
use borehole_testkit::peers::peer;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::play::{
    Collect, PlainFrame, PlainLabel, PlainSample, PlainSegment, any_samples, collected, named, play,
};

const MADE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../corpus/otlp/processes.otlp");
const SHOP: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../corpus/rbt/pid_samples.rbt");
const START: i64 = 1_700_000_000_000_000_000;

fn read_with(bytes: &[u8], options: &ReadOptions) -> Result<(Collect, Recovery), Error> {
    collected(|tables, sink| import(bytes, options, tables, sink))
}

fn read(bytes: &[u8]) -> Collect {
    read_with(bytes, &ReadOptions::default()).unwrap().0
}

fn write(segments: &[PlainSegment]) -> (Vec<u8>, String) {
    let mut bytes = Vec::new();
    let mut exporter = Exporter::new(&mut bytes, || Ok(io::Cursor::new(Vec::new())));
    play(segments, &mut exporter);
    let losses = exporter.losses().to_string();
    drop(exporter);
    (bytes, losses)
}

fn sample(names_leaf_first: &[&str], count: u64, time_ns: Option<i64>) -> PlainSample {
    let frames_leaf_first = names_leaf_first.iter().map(|name| named(name)).collect();
    PlainSample { frames_leaf_first, count, time_ns, ..PlainSample::default() }
}

/// What OpenTelemetry's classes read in a document.
fn judged(bytes: &[u8]) -> Option<Value> {
    let peer = peer("otlp")?;
    let scratch = Scratch::new();
    let file = scratch.write("a.otlp", bytes);
    Some(serde_json::from_str(&peer.stdout(&["read", &file.to_string_lossy()])).unwrap())
}

#[test]
fn a_document_of_opentelemetrys_classes_holds_what_they_put_in() {
    let collect = read(&std::fs::read(MADE).unwrap());
    let [timed, sums] = &collect.segments[..] else { panic!("{:?}", collect.segments) };
    assert_eq!(
        (timed.period_ns, timed.start_unix_ns, timed.has_times),
        (Some(50_000_000), Some(START), true)
    );
    let metadata: Vec<_> = timed.metadata.iter().map(|(key, value)| format!("{key}={value}")).collect();
    assert_eq!(metadata, ["service.name=shop", "otel.scope.name=ebpf-profiler", "otel.scope.version=1"]);
    let times: Vec<_> = timed.samples.iter().map(|sample| (sample.time_ns, sample.count)).collect();
    assert_eq!(times, [(Some(10), 1), (Some(20), 2), (Some(30), 1)]);
    assert!(timed.samples.iter().all(|sample| sample.process == Some(4711)));
    assert_eq!(collect.thread_names, [(11, "worker".to_owned())]);
    let text = |key: &str, value: &str| PlainLabel::Text(key.to_owned(), value.to_owned());
    let span = [text("trace_id", "000102030405060708090a0b0c0d0e0f"), text("span_id", "0001020304050607")];
    assert_eq!((timed.samples[0].thread, &timed.samples[0].labels[..]), (Some(11), &span[..]));
    assert_eq!(timed.samples[1].labels, [text("tags", "a"), text("tags", "true"), text("tags", "1.5")]);
    let names = |sample: &PlainSample| -> Vec<String> {
        sample.frames_leaf_first.iter().map(|frame| frame.function.clone()).collect()
    };
    assert_eq!(names(&timed.samples[0]), ["inlined", "work", "main"]);
    assert_eq!(names(&timed.samples[1]), ["0x5678", "main"]);
    let inlined = &timed.samples[0].frames_leaf_first[0];
    assert_eq!(
        (inlined.file.as_deref(), inlined.line, inlined.column),
        (Some("/src/work.rs"), Some(7), Some(2))
    );
    // Two profiles of the same samples are one segment with both values.
    assert_eq!(sums.value_types, [("cpu".to_owned(), "nanoseconds".to_owned())]);
    let numbers: Vec<_> = sums.samples.iter().map(|sample| (sample.count, &sample.values[..])).collect();
    assert_eq!(numbers, [(3, &[300][..]), (4, &[400])]);
    let size = PlainLabel::Number("allocation_size".to_owned(), 128, Some("bytes".to_owned()));
    assert_eq!(sums.samples[0].labels, [size]);
}

#[test]
fn opentelemetrys_classes_read_what_is_written() {
    let query = PlainLabel::Text("query".to_owned(), "SELECT 1".to_owned());
    let first = PlainSample {
        thread: Some(9),
        labels: vec![query],
        status: Some(0b11),
        ..sample(&["b", "a"], 1, Some(5))
    };
    let frame = PlainFrame { native: Some(("libc.so".to_owned(), Some(0x1f))), ..named("poll") };
    let native = PlainSample { frames_leaf_first: vec![frame], ..sample(&[], 1, Some(7)) };
    let segments = [PlainSegment {
        period_ns: Some(1_000_000),
        has_times: true,
        start_unix_ns: Some(START),
        metadata: vec![("host".to_owned(), "web1".to_owned())],
        samples: vec![first.clone(), native, PlainSample { time_ns: Some(9), ..first }],
        ..PlainSegment::default()
    }];
    let (bytes, losses) = write(&segments);
    assert_eq!(losses, "");
    let Some(found) = judged(&bytes) else { return };
    let line =
        |name: &str| json!({"lines": [[name, "", 0, 0]], "module": "", "address": 0, "attributes": {}});
    let native = json!({
        "lines": [["poll", "", 0, 0]], "module": "libc.so", "address": 31,
        "attributes": {"profile.frame.type": ["native", ""]},
    });
    let said = json!({
        "thread.id": [9, ""],
        "borehole.thread_status": [["has_gil", "on_cpu"], ""],
        "query": ["SELECT 1", ""],
    });
    let expected = json!([{
        "resource": {}, "scope": "borehole", "type": ["samples", "count"],
        "time": START + 5, "duration": 1_000_004, "period": 1_000_000, "period_type": ["wall", "nanoseconds"],
        "attributes": {"host": ["web1", ""]},
        "samples": [
            {"frames": [line("b"), line("a")], "values": [], "times": [START + 5, START + 9], "attributes": said},
            {"frames": [native], "values": [], "times": [START + 7], "attributes": {}},
        ],
    }]);
    assert_eq!(found, expected);
}

#[test]
fn opentelemetrys_classes_count_the_samples_of_a_trace_of_reli() {
    let (mut tables, mut bytes) = (Tables::default(), Vec::new());
    let mut exporter = Exporter::new(&mut bytes, || Ok(io::Cursor::new(Vec::new())));
    let trace = io::BufReader::new(std::fs::File::open(SHOP).unwrap());
    let recovery =
        borehole_formats::rbt::import(trace, &ReadOptions::default(), &mut tables, &mut exporter).unwrap();
    borehole_model::ProfileSink::finish(&mut exporter, &tables).unwrap();
    drop(exporter);
    let Some(found) = judged(&bytes) else { return };
    let (mut samples, mut processes) = (0, Vec::new());
    for profile in found.as_array().unwrap() {
        processes.extend(profile["resource"]["process.pid"].as_i64());
        for sample in profile["samples"].as_array().unwrap() {
            let values = sample["values"].as_array().unwrap();
            samples += values.iter().filter_map(Value::as_u64).sum::<u64>();
            samples += if values.is_empty() { sample["times"].as_array().unwrap().len() as u64 } else { 0 };
        }
    }
    assert_eq!((samples, processes.len()), (recovery.samples, 4), "{processes:?}");
}

#[test]
fn values_of_several_types_are_profiles_of_the_same_samples() {
    let types = [("samples", "count"), ("cpu", "nanoseconds"), ("alloc", "bytes")];
    let value = |name: &str, values: &[i64], time_ns| PlainSample {
        values: values.to_vec(),
        ..sample(&[name], values[0].unsigned_abs(), time_ns)
    };
    let segment = PlainSegment {
        start_unix_ns: Some(START),
        has_times: true,
        value_types: types.iter().map(|(kind, unit)| ((*kind).to_owned(), (*unit).to_owned())).collect(),
        samples: vec![
            value("a", &[2, 20, 200], Some(0)),
            value("b", &[1, -5, 0], Some(1)),
            value("a", &[1, 10, 100], Some(2)),
        ],
        ..PlainSegment::default()
    };
    let (bytes, _) = write(std::slice::from_ref(&segment));
    let back = read(&bytes);
    let numbers: Vec<_> = back.samples().map(|sample| (sample.count, sample.values.clone())).collect();
    assert_eq!(numbers, [(2, vec![20, 200]), (1, vec![-5, 0]), (1, vec![10, 100])]);
    assert_eq!(back.segments.len(), 1);
    if let Some(found) = judged(&bytes) {
        let names: Vec<_> =
            found.as_array().unwrap().iter().map(|profile| profile["type"][0].clone()).collect();
        assert_eq!(names, ["samples", "cpu", "alloc"]);
        assert_eq!(found[1]["samples"][0]["values"], json!([20, 10]));
    }
}

#[test]
fn times_of_a_clock_without_origin_come_back_as_they_were() {
    let samples =
        vec![sample(&["a"], 1, Some(-3)), sample(&["a"], 1 << 40, Some(4)), sample(&["b"], 2, None)];
    let segment = PlainSegment { has_times: true, samples, ..PlainSegment::default() };
    let back = read(&write(std::slice::from_ref(&segment)).0);
    let times: Vec<_> = back.samples().map(|sample| (sample.time_ns, sample.count)).collect();
    assert_eq!(times, [(None, 2), (Some(-3), 1), (Some(4), 1 << 40)]);
    assert_eq!((back.segments[0].start_unix_ns, &back.segments[0].metadata[..]), (None, &[][..]));
}

#[test]
fn a_profile_begins_with_its_first_time_whatever_the_clock() {
    for start_unix_ns in [None, Some(START)] {
        let samples = vec![sample(&["a"], 1, Some(1_624_000)), sample(&["a"], 1, Some(1_625_000))];
        let segment = PlainSegment { has_times: true, start_unix_ns, samples, ..PlainSegment::default() };
        let (bytes, _) = write(&[segment]);
        let first = (start_unix_ns.unwrap_or(0) + 1_624_000).to_le_bytes();
        // Field 3, of 64 bits.
        let time = [&[3 << 3 | 1][..], &first].concat();
        assert!(bytes.windows(time.len()).any(|window| window == time), "{start_unix_ns:?}");
        assert!(
            judged(&bytes).is_none_or(|found| found[0]["time"].as_i64() == Some(i64::from_le_bytes(first)))
        );
    }
}

#[test]
fn machine_code_in_memory_without_a_name_stays_that_without_an_empty_entry() {
    let frame = PlainFrame { native: Some((String::new(), Some(0x1f))), ..named("compiled") };
    let segment = PlainSegment {
        samples: vec![PlainSample { frames_leaf_first: vec![frame], ..sample(&[], 1, None) }],
        ..PlainSegment::default()
    };
    let (bytes, _) = write(std::slice::from_ref(&segment));
    assert_eq!(read(&bytes).segments[0].samples, segment.samples);
    // The classes look for entries that are there twice.
    assert!(judged(&bytes).is_none_or(|found| found.as_array().is_some_and(|profiles| profiles.len() == 1)));
}

#[test]
fn a_time_before_1970_is_dropped_and_said() {
    let samples = vec![sample(&["a"], 3, Some(-11)), sample(&["a"], 1, Some(-10))];
    let segment =
        PlainSegment { has_times: true, start_unix_ns: Some(10), samples, ..PlainSegment::default() };
    let (bytes, losses) = write(&[segment]);
    assert_eq!(losses, "timestamps before 1970 dropped: 3");
    assert_eq!(read(&bytes).count(), 4);
}

#[test]
fn indexes_that_lead_nowhere_are_errors_with_a_place() {
    let document = |sample: &[u8], dictionary: &[u8]| {
        let field = |number: u8, bytes: &[u8]| {
            [&[number << 3 | 2, u8::try_from(bytes.len()).unwrap()][..], bytes].concat()
        };
        let profile = field(2, &field(2, &field(2, sample)));
        [field(1, &profile), field(2, dictionary)].concat()
    };
    let stack = [0x3a, 0, 0x3a, 3, 0x0a, 1, 5];
    for (sample, dictionary, expected) in [
        (&[0x08, 2, 0x22, 1, 1][..], &[0x3a, 0][..], "expected a stack index below 1, found 2"),
        (&[0x08, 1, 0x22, 1, 1], &stack, "expected a location index below 0, found 5"),
        (&[0x12, 1, 7, 0x22, 1, 1], &[], "expected an attribute index below 0, found 7"),
        (&[0x18, 9, 0x22, 1, 1], &[], "expected a link index below 0, found 9"),
        (&[], &[], "expected a value or a time in a sample, found neither"),
    ] {
        let bytes = document(sample, dictionary);
        let error = read_with(&bytes, &ReadOptions::default()).unwrap_err();
        assert!(error.message().contains(expected) && error.offset().is_some(), "{error}");
        let (collect, recovery) = read_with(&bytes, &ReadOptions::lenient()).unwrap();
        assert_eq!((collect.count(), recovery.warnings.len(), collect.warnings), (0, 1, 1));
    }
}

#[test]
fn a_location_with_many_functions_cannot_ask_for_more_than_the_document_is_worth() {
    // A location of 1,000 lines, 30,000 times in one stack.
    let field = |number: u32, bytes: &[u8]| {
        let mut out = Vec::new();
        borehole_wire::put_varint(&mut out, u64::from(number) << 3 | 2);
        borehole_wire::put_varint(&mut out, bytes.len() as u64);
        [out, bytes.to_vec()].concat()
    };
    let location = field(2, &field(3, &[0x08, 0]).repeat(1_000));
    let stack = field(7, &field(1, &[0; 30_000]));
    let profile = field(2, &field(2, &[0x22, 1, 1]));
    let bytes = [field(1, &field(2, &profile)), field(2, &[location, stack].concat())].concat();
    let error = read_with(&bytes, &ReadOptions::default()).unwrap_err();
    assert!(error.is_limit() && error.message().contains("too many frames"), "{error}");
    let limits = Limits { document_bytes: 8, ..Limits::default() };
    let error = read_with(&bytes, &ReadOptions { limits, ..ReadOptions::default() }).unwrap_err();
    assert!(error.is_limit(), "{error}");
}

#[test]
fn every_beginning_and_every_changed_byte_is_read_or_refused() {
    let bytes = std::fs::read(MADE).unwrap();
    for end in 0..bytes.len() {
        let _ = read_with(&bytes[..end], &ReadOptions::default());
        assert!(read_with(&bytes[..end], &ReadOptions::lenient()).is_ok() || end == 0, "{end}");
    }
    for place in 0..bytes.len() {
        for change in [0x01, 0x80, 0xff] {
            let mut changed = bytes.clone();
            changed[place] ^= change;
            let strict = read_with(&changed, &ReadOptions::default());
            let (lenient, _) = read_with(&changed, &ReadOptions::lenient()).unwrap();
            assert!(strict.is_err() || strict.unwrap().0.count() == lenient.count(), "{place}");
        }
    }
}

/// Labels that share their name are together, and have the unit of the first number.
fn grouped(labels: &[PlainLabel]) -> Vec<PlainLabel> {
    let key = |label: &PlainLabel| match label {
        PlainLabel::Text(key, _) | PlainLabel::Number(key, ..) => key.clone(),
    };
    let mut out: Vec<PlainLabel> = Vec::new();
    for label in labels {
        if out.iter().any(|known| key(known) == key(label)) {
            continue;
        }
        let same = labels.iter().filter(|other| key(other) == key(label));
        let unit = same.clone().find_map(|label| match label {
            PlainLabel::Number(_, _, unit) => Some(unit.clone()),
            PlainLabel::Text(..) => None,
        });
        out.extend(same.cloned().map(|label| match label {
            PlainLabel::Number(key, value, _) => PlainLabel::Number(key, value, unit.clone().flatten()),
            text => text,
        }));
    }
    out
}

/// Counts by everything else.
fn totals<'s>(samples: impl Iterator<Item = &'s PlainSample>) -> Vec<(PlainSample, u64)> {
    let mut totals: Vec<(PlainSample, u64)> = Vec::new();
    for sample in samples {
        let key = PlainSample { count: 0, labels: grouped(&sample.labels), ..sample.clone() };
        match totals.iter_mut().find(|(known, _)| *known == key) {
            Some((_, total)) => *total = total.saturating_add(sample.count),
            None => totals.push((key, sample.count)),
        }
    }
    totals.sort_by_key(|(sample, _)| format!("{sample:?}"));
    totals
}

proptest! {
    #[test]
    fn what_is_written_is_read_again(
        samples in any_samples(),
        times in proptest::collection::vec(proptest::option::of(0..1_000_i64), 12),
        period_ns in proptest::option::of(1..1_u64 << 40),
        start_unix_ns in proptest::option::of(1..START),
    ) {
        let timed = samples.into_iter().zip(times);
        let samples: Vec<_> = timed.map(|(sample, time_ns)| PlainSample { time_ns, ..sample }).collect();
        let has_times = samples.iter().any(|sample| sample.time_ns.is_some());
        let segment = PlainSegment { period_ns, has_times, start_unix_ns, samples, ..PlainSegment::default() };
        let (bytes, losses) = write(std::slice::from_ref(&segment));
        prop_assert!(losses.is_empty() || losses.starts_with("units of labels"), "{}", losses);
        let back = read(&bytes);
        // The clock begins with the first sample, or where the segment's did.
        let origin = start_unix_ns.unwrap_or(0);
        let back_origin = back.segments.first().and_then(|segment| segment.start_unix_ns).unwrap_or(0);
        let shift = back_origin - origin;
        let shifted = back.samples().map(|sample| PlainSample {
            time_ns: sample.time_ns.map(|time| time + shift),
            ..sample.clone()
        });
        let shifted: Vec<_> = shifted.collect();
        prop_assert_eq!(totals(shifted.iter()), totals(segment.samples.iter()));
        prop_assert!(back.segments.iter().all(|segment| segment.period_ns == period_ns));
        prop_assert!(bytes.is_empty() || borehole_formats::detect::detect(&bytes)
            .is_none_or(|format| format.name() == "otlp"));
    }

    #[test]
    fn no_bytes_make_the_reader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = read_with(&bytes, &ReadOptions::default());
        let _ = read_with(&bytes, &ReadOptions::lenient());
    }
}

#[test]
fn counts_that_the_format_cannot_hold_are_counted() {
    let samples =
        vec![sample(&["a"], u64::MAX, None), sample(&["b"], u64::MAX, Some(5)), sample(&["c"], 7, None)];
    let segment = PlainSegment { has_times: true, samples, ..PlainSegment::default() };
    assert_eq!(write(&[segment]).1, "sums beyond 64 bits dropped: 2");
}

#[test]
fn every_flag_of_a_threads_state_comes_back() {
    let samples = (0..=u8::MAX).map(|flags| PlainSample { status: Some(flags), ..sample(&["a"], 1, None) });
    let samples: Vec<_> = samples.collect();
    let segment = PlainSegment { samples: samples.clone(), ..PlainSegment::default() };
    assert_eq!(read(&write(&[segment]).0).segments[0].samples, samples);
}
