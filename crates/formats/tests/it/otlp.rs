//! `otlp`, compared with OpenTelemetry's own classes and with itself.

use std::io;

use borehole_formats::otlp::{Exporter, import};
use borehole_formats::{Error, Export as _, Limits, ReadOptions};
use borehole_model::{Measure, Mode, Recovery, Tables};
use borehole_testkit::Scratch;
use borehole_testkit::peers::peer;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::play::{
    Collect, PlainFrame, PlainLabel, PlainSample, PlainSegment, Weights, any_samples, collected, named, play,
};

const CORPUS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../corpus/otlp");
const MADE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../corpus/otlp/processes.otlp");
const SHOP: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../corpus/rbt/pid_samples.rbt");
const START: i64 = 1_700_000_000_000_000_000;

fn read_with(bytes: &[u8], options: &ReadOptions) -> Result<(Collect, Recovery), Error> {
    collected(|tables, sink| import(bytes, options, tables, sink))
}

fn read(bytes: &[u8]) -> Collect {
    read_with(bytes, &ReadOptions::default()).unwrap().0
}

fn write(segments: &[PlainSegment]) -> (Vec<u8>, String) {
    let mut bytes = Vec::new();
    let mut exporter = Exporter::new(&mut bytes, || Ok(Box::new(io::Cursor::new(Vec::new()))));
    play(segments, &mut exporter);
    let losses = exporter.losses().to_string();
    drop(exporter);
    (bytes, losses)
}

fn sample(names_leaf_first: &[&str], count: u64, time_ns: Option<i64>) -> PlainSample {
    let frames_leaf_first = names_leaf_first.iter().map(|name| named(name)).collect();
    PlainSample { frames_leaf_first, count, time_ns, ..PlainSample::default() }
}

/// A file of the corpus, decompressed.
fn corpus(name: &str) -> Vec<u8> {
    let bytes = std::fs::read(format!("{CORPUS}/{name}")).unwrap();
    if !name.ends_with(".gz") {
        return bytes;
    }
    let mut out = Vec::new();
    io::Read::read_to_end(&mut flate2::read::MultiGzDecoder::new(&bytes[..]), &mut out).unwrap();
    out
}

/// The weights of the samples of documents.
fn weights(bytes: &[u8], asked: Option<&str>) -> Weights {
    let (mut tables, mut weights) = (Tables::default(), Weights::new(asked));
    import(bytes, &ReadOptions::default(), &mut tables, &mut weights).unwrap();
    weights
}

fn written_again(bytes: &[u8]) -> Vec<u8> {
    let (mut tables, mut again) = (Tables::default(), Vec::new());
    let mut exporter = Exporter::new(&mut again, || Ok(Box::new(io::Cursor::new(Vec::new()))));
    import(bytes, &ReadOptions::default(), &mut tables, &mut exporter).unwrap();
    borehole_model::ProfileSink::finish(&mut exporter, &tables).unwrap();
    drop(exporter);
    again
}

/// The value types of each segment, and its samples in a fixed order.
fn kinds(collect: &Collect) -> Vec<(Vec<String>, Mode, bool, usize, i64)> {
    let kind = |segment: &PlainSegment| {
        let types = segment.value_types.iter().map(|(kind, unit)| format!("{kind}/{unit}")).collect();
        let sum = segment.samples.iter().flat_map(|sample| &sample.values).sum();
        (types, segment.mode, segment.is_uncounted, segment.samples.len(), sum)
    };
    collect.segments.iter().map(kind).collect()
}

#[test]
fn a_profile_of_cpu_time_weighs_its_nanoseconds_and_gets_no_count() {
    for (name, observations) in [("cpu-only.otlp", 2), ("cpu-and-times.otlp", 3)] {
        let bytes = corpus(name);
        let weights = weights(&bytes, None);
        assert_eq!(weights.value_type(), "cpu/nanoseconds");
        let sums = [("slow", 900_000_000), ("fast", 1_000_000)].map(|(name, sum)| (name.to_owned(), sum));
        assert_eq!(weights.sums, sums.into(), "{name}");
        let collect = read(&bytes);
        let segment = &collect.segments[0];
        assert_eq!(
            (segment.mode, segment.is_uncounted, segment.samples.len()),
            (Mode::Cpu, true, observations)
        );
        let again = written_again(&bytes);
        assert_eq!(read(&again).segments[0].samples, segment.samples, "{name}");
        assert!(!again.windows(7).any(|text| text == b"samples"), "{name}");
    }
}

#[test]
fn profiles_of_one_request_are_separate_kinds() {
    let bytes = corpus("cpu-heap-locks.otlp");
    let weights = |asked| weights(&bytes, asked);
    let shown = weights(None);
    assert_eq!((&*shown.value_type(), shown.total()), ("wall/nanoseconds", 5_500_000_000));
    let hidden: Vec<_> = shown.weigher.hidden().map(|(kind, samples)| (kind.to_string(), samples)).collect();
    let expected = [("memory.heap.objects/count", 181), ("lock.acquire.duration/nanoseconds", 19)];
    assert_eq!(hidden[..2], expected.map(|(kind, samples)| (kind.to_owned(), samples)));
    for (kind, total) in
        [("memory.heap.bytes", 850_245), ("memory.heap.objects", 540), ("lock.hold.duration", 2_310_270_684)]
    {
        assert_eq!(weights(Some(kind)).total(), total, "{kind}");
    }
    let again = written_again(&bytes);
    assert_eq!(kinds(&read(&again)), kinds(&read(&bytes)));
    let Some(found) = judged(&again) else { return };
    let kinds = found.as_array().unwrap().iter();
    let kinds = kinds.map(|profile| json!([profile["type"], profile["period_type"], profile["period"]]));
    let heap = json!(["memory.heap", "count"]);
    let expected = [
        json!([["samples", "count"], ["wall", "nanoseconds"], 10_000_000]),
        json!([["memory.heap.bytes", "bytes"], heap, 1]),
        json!([["memory.heap.objects", "count"], heap, 1]),
        json!([["lock.acquire.duration", "nanoseconds"], ["lock.acquire", "count"], 1]),
        json!([["lock.hold.duration", "nanoseconds"], ["lock.release", "count"], 1]),
    ];
    assert_eq!(kinds.collect::<Vec<_>>(), expected);
    for (name, value) in [("service.name", "shop-py"), ("deployment.environment.name", "prod")] {
        assert_eq!(found[0]["resource"][name], value);
        assert!(found[0]["attributes"].get(name).is_none());
    }
}

#[test]
fn resources_are_separated_by_labels_and_written_once() {
    let bytes = corpus("two-services.otlp");
    let by_service = |bytes: &[u8]| {
        let mut counts = std::collections::BTreeMap::new();
        for sample in read(bytes).samples() {
            let service = sample.labels.iter().find_map(|label| match label {
                PlainLabel::Text(key, value) if key == "service.name" => Some(value.clone()),
                _ => None,
            });
            *counts.entry(service.unwrap()).or_insert(0) += sample.count;
        }
        counts
    };
    let expected = [("checkout".to_owned(), 70), ("search".to_owned(), 30)].into();
    assert_eq!(by_service(&bytes), expected);
    let again = written_again(&bytes);
    assert_eq!(by_service(&again), expected);
    for text in ["checkout", "search"] {
        assert_eq!(
            again.windows(text.len()).filter(|window| *window == text.as_bytes()).count(),
            1,
            "{text}"
        );
    }
    if let Some(found) = judged(&again) {
        let resources: Vec<_> =
            found.as_array().unwrap().iter().map(|profile| &profile["resource"]).collect();
        let resource =
            |service| json!({"service.name": service, "service.version": "1.0", "host.name": "web-1"});
        assert_eq!(resources, [&resource("checkout"), &resource("search")]);
    }
}

#[test]
fn labels_of_samples_override_those_of_the_resource() {
    let label = |key: &str, value: &str| PlainLabel::Text(key.to_owned(), value.to_owned());
    let with = |labels: Vec<PlainLabel>| PlainSample { labels, ..sample(&["a"], 1, None) };
    let samples = vec![
        with(vec![label("service.name", "x"), label("q", "1")]),
        with(vec![label("service.name", "x"), label("service.name", "y")]),
        with(vec![]),
    ];
    let segment = PlainSegment { samples, ..PlainSegment::default() };
    let back = read(&write(std::slice::from_ref(&segment)).0);
    assert_eq!(totals(back.samples()), totals(segment.samples.iter()));
    assert_eq!(back.segments.len(), 2);
}

#[test]
fn files_of_the_collector_are_read() {
    let whole = read(&corpus("cpu-heap-locks.otlp"));
    let lines = read(&corpus("collector-lines.jsonl.gz"));
    assert_eq!(lines.segments, whole.segments);
    let lengths = corpus("collector-lengths.otlp.gz");
    let both = read(&lengths);
    assert_eq!(both.segments.len(), 2 * whole.segments.len());
    assert_eq!(both.segments[whole.segments.len()].samples, whole.segments[0].samples);
    // So are lengths as varints, compressed data, and compressed JSON.
    let document = corpus("cpu-heap-locks.otlp");
    let mut delimited = Vec::new();
    borehole_wire::put_varint(&mut delimited, document.len() as u64);
    delimited.extend_from_slice(&document);
    assert_eq!(read(&delimited.repeat(2)).count(), 2 * whole.count());
    for plain in [&document, &corpus("collector-lines.jsonl.gz")] {
        let packed = zstd::encode_all(&plain[..], 1).unwrap();
        let length = u32::try_from(packed.len()).unwrap().to_be_bytes();
        assert_eq!(read(&[&length[..], &packed].concat().repeat(2)).count(), 2 * whole.count());
    }
    let pretty: Value = serde_json::from_slice(&corpus("collector-lines.jsonl.gz")).unwrap();
    let pretty = serde_json::to_vec_pretty(&pretty).unwrap();
    assert_eq!(read(&[&b"\xef\xbb\xbf\n"[..], &pretty, &pretty].concat()).count(), 2 * whole.count());
}

#[test]
fn truncated_and_bad_documents_are_reported_with_positions() {
    let lengths = corpus("collector-lengths.otlp.gz");
    let half = lengths.len() / 2;
    let count = read(&lengths).count();
    for (end, place, message) in [
        (half + 2, half + 2, "truncated: 2 bytes missing in a length"),
        (lengths.len() - 9, lengths.len() - 9, "truncated: 9 bytes missing"),
    ] {
        let error = read_with(&lengths[..end], &ReadOptions::default()).unwrap_err();
        assert_eq!(
            (error.message(), error.offset(), error.is_truncated()),
            (message, Some(place as u64), true)
        );
        let (collect, recovery) = read_with(&lengths[..end], &ReadOptions::lenient()).unwrap();
        assert_eq!((collect.count(), recovery.warnings.len()), (count / 2, 1));
    }
    let huge = [7, 0xff, 0xff, 0xff, b'x'];
    let error = read_with(&huge, &ReadOptions::default()).unwrap_err();
    assert!(error.message().contains("bytes missing"), "{error}");
    // An index out of range is reported with its position in the document.
    let mut bad = lengths.clone();
    let at = half + 4 + 2;
    bad.truncate(half);
    let small = [0x0a, 8, 0x12, 6, 0x12, 4, 0x12, 2, 0x08, 5];
    bad.extend([0, 0, 0, 10]);
    bad.extend(small);
    let error = read_with(&bad, &ReadOptions::default()).unwrap_err();
    assert!(error.offset().unwrap() > at as u64 && error.offset().unwrap() < bad.len() as u64, "{error}");
    let line = corpus("collector-lines.jsonl.gz");
    let line = line.trim_ascii_end();
    let lines = [line, b"\n{\"dictionary\": 7} {}\n\n", line, b"\n{\"resourceProfiles\": ["].concat();
    let error = read_with(&lines, &ReadOptions::default()).unwrap_err();
    assert_eq!(error.position(), borehole_formats::Position::Line(2), "{error}");
    assert!(error.message().contains("expected an object for dictionary"), "{error}");
    let (collect, recovery) = read_with(&lines, &ReadOptions::lenient()).unwrap();
    assert_eq!((collect.count(), recovery.warnings.len()), (count, 2), "{:?}", recovery.warnings);
    assert!(
        recovery.warnings[1].message.contains("truncated")
            && recovery.warnings[1].message.contains("(line 5)")
    );
    let index = br#"{"resourceProfiles":[{"scopeProfiles":[{"profiles":[{"samples":[{"stackIndex":3,"values":[1]}]}]}]}]}"#;
    let error = read_with(&[b"{}\n", &index[..]].concat(), &ReadOptions::default()).unwrap_err();
    assert_eq!(error.position(), borehole_formats::Position::Line(2), "{error}");
    assert!(error.message().contains("expected a stack index below 0, found 3"), "{error}");
}

#[test]
fn documents_of_older_releases_are_recognised() {
    let field = |number: u8, bytes: &[u8]| {
        [&[number << 3 | 2, u8::try_from(bytes.len()).unwrap()][..], bytes].concat()
    };
    let container = [&field(1, &[7; 16])[..], &[2 << 3 | 1, 0, 0, 0, 0, 0, 0, 0, 1]].concat();
    let locations = [&field(1, &[8, 1])[..], &field(3, &[0, 1, 2])].concat();
    for (profile, release) in [(container, "v1experimental"), (locations, "v1development")] {
        let bytes = field(1, &field(2, &field(2, &profile)));
        let error = read_with(&bytes, &ReadOptions::default()).unwrap_err();
        assert!(error.is_unsupported() && error.message().contains("older release"), "{error}");
        assert!(error.message().ends_with(release), "{error}");
    }
    let json =
        br#"{"resourceProfiles":[{"scopeProfiles":[{"profiles":[{"sampleType":null,"sample":[{}]}]}]}]}"#;
    let error = read_with(json, &ReadOptions::default()).unwrap_err();
    assert!(error.message().contains("older release"), "{error}");
}

#[test]
fn profiles_of_cpu_time_come_first_and_then_those_of_wall_time() {
    let segment = |names: &[&str], name: &str| PlainSegment {
        value_types: names
            .iter()
            .map(|name| name.split_once('/').unwrap())
            .map(|(kind, unit)| (kind.into(), unit.into()))
            .collect(),
        is_uncounted: true,
        samples: vec![PlainSample { values: vec![7; names.len()], ..sample(&[name], 1, None) }],
        ..PlainSegment::default()
    };
    let (bytes, _) = write(&[
        segment(&["space/bytes"], "heap"),
        segment(&["wall/milliseconds", "objects/count"], "wall"),
        segment(&["cpu/count"], "count"),
        segment(&["cpu/microseconds", "objects/count"], "cpu"),
    ]);
    let order: Vec<_> =
        read(&bytes).samples().map(|sample| sample.frames_leaf_first[0].function.clone()).collect();
    assert_eq!(order, ["cpu", "wall", "heap", "count"]);
    assert_eq!(read(&bytes).segments[0].default_measure, Some(Measure::Value(0)));
    assert_eq!(weights(&bytes, None).sums, [("cpu".to_owned(), 7000)].into());
}

#[test]
fn records_with_values_but_no_count_are_uncounted() {
    let types =
        [("samples", "count"), ("space", "bytes")].map(|(kind, unit)| (kind.to_owned(), unit.to_owned()));
    let of = |name: &str, values: &[i64]| PlainSample { values: values.to_vec(), ..sample(&[name], 1, None) };
    let segment = PlainSegment {
        value_types: types.to_vec(),
        is_uncounted: true,
        samples: vec![of("a", &[3, 30]), of("b", &[0, 7]), of("c", &[0, 0])],
        ..PlainSegment::default()
    };
    let back = read(&write(std::slice::from_ref(&segment)).0);
    assert_eq!(back.segments, [segment]);
}

/// The contents of a document as OpenTelemetry's classes read it.
fn judged(bytes: &[u8]) -> Option<Value> {
    let peer = peer("otlp")?;
    let scratch = Scratch::new();
    let file = scratch.write("a.otlp", bytes);
    Some(serde_json::from_str(&peer.stdout(&["read", &file.to_string_lossy()])).unwrap())
}

#[test]
fn documents_of_opentelemetrys_classes_are_read_completely() {
    let collect = read(&std::fs::read(MADE).unwrap());
    let [timed, sums] = &collect.segments[..] else { panic!("{:?}", collect.segments) };
    assert_eq!(
        (timed.period_ns, timed.start_unix_ns, timed.has_times),
        (Some(50_000_000), Some(START), true)
    );
    let metadata: Vec<_> = timed.metadata.iter().map(|(key, value)| format!("{key}={value}")).collect();
    assert_eq!(metadata, ["service.name=shop", "otel.scope.name=ebpf-profiler", "otel.scope.version=1"]);
    assert_eq!(timed.mode, Mode::Cpu);
    let times: Vec<_> = timed.samples.iter().map(|sample| (sample.time_ns, sample.count)).collect();
    assert_eq!(times, [(Some(10), 1), (Some(20), 2), (Some(30), 1)]);
    assert!(timed.samples.iter().all(|sample| sample.process == Some(4711)));
    assert_eq!(collect.thread_names, [(11, "worker".to_owned())]);
    let text = |key: &str, value: &str| PlainLabel::Text(key.to_owned(), value.to_owned());
    let shop = text("service.name", "shop");
    let span = [
        shop.clone(),
        text("trace_id", "000102030405060708090a0b0c0d0e0f"),
        text("span_id", "0001020304050607"),
    ];
    assert_eq!((timed.samples[0].thread, &timed.samples[0].labels[..]), (Some(11), &span[..]));
    assert_eq!(timed.samples[1].labels, [shop, text("tags", "a"), text("tags", "true"), text("tags", "1.5")]);
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
fn opentelemetrys_classes_read_our_documents() {
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
    let mut exporter = Exporter::new(&mut bytes, || Ok(Box::new(io::Cursor::new(Vec::new()))));
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
fn times_of_a_clock_without_origin_survive() {
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
fn unnamed_machine_code_survives_without_an_empty_entry() {
    let frame = PlainFrame { native: Some((String::new(), Some(0x1f))), ..named("compiled") };
    let segment = PlainSegment {
        samples: vec![PlainSample { frames_leaf_first: vec![frame], ..sample(&[], 1, None) }],
        ..PlainSegment::default()
    };
    let (bytes, _) = write(std::slice::from_ref(&segment));
    assert_eq!(read(&bytes).segments[0].samples, segment.samples);
    // The classes search for duplicate entries.
    assert!(judged(&bytes).is_none_or(|found| found.as_array().is_some_and(|profiles| profiles.len() == 1)));
}

#[test]
fn times_before_1970_are_dropped_and_reported() {
    let samples = vec![sample(&["a"], 3, Some(-11)), sample(&["a"], 1, Some(-10))];
    let segment =
        PlainSegment { has_times: true, start_unix_ns: Some(10), samples, ..PlainSegment::default() };
    let (bytes, losses) = write(&[segment]);
    assert_eq!(losses, "timestamps before 1970 dropped: 3");
    assert_eq!(read(&bytes).count(), 4);
}

#[test]
fn invalid_indexes_are_errors_with_a_position() {
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
fn locations_with_many_functions_are_bounded_by_the_document() {
    // A location of 1,000 lines that occurs 30,000 times in one stack.
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
    let limits = Limits { memory_bytes: 8, ..Limits::default() };
    let error = read_with(&bytes, &ReadOptions { limits, ..ReadOptions::default() }).unwrap_err();
    assert!(error.is_memory(), "{error}");
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

/// Labels with the same name are grouped, with the unit of the first number.
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

/// Counts by all other properties.
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
    fn written_samples_survive_a_round_trip(
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
        // The clock begins at the first sample, or at the start of the segment.
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
