//! `pprof`, compared with files of other writers, with `go tool pprof`, and with itself.

#![allow(
    clippy::unwrap_used,
    clippy::cast_precision_loss,
    reason = "tests fail by panics; shares are rounded"
)]

use borehole_formats::Compression;
use std::io::{self, Read as _};

use borehole_formats::pprof::{Exporter, import};
use borehole_formats::{Error, Export as _, Limits, ReadError, ReadOptions, otlp};
use borehole_model::{Count, Measure, Mode, Recovery, Tables};
use borehole_testkit::Scratch;
use borehole_testkit::peers::{Peer, peer};
use proptest::prelude::*;

use crate::play::{
    Collect, PlainFrame, PlainLabel, PlainSample, PlainSegment, Weights, any_samples, collected, named, play,
    play_inputs,
};

const CONVERTED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../corpus/rbt/expected/conv");
const OWN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../corpus/pprof");

fn read_with(bytes: &[u8], options: &ReadOptions) -> Result<(Collect, Recovery), Error> {
    collected(|tables, sink| import(bytes, options, tables, sink))
}

fn read(bytes: &[u8]) -> Collect {
    read_with(bytes, &ReadOptions::default()).unwrap().0
}

fn write(segments: &[PlainSegment]) -> Vec<u8> {
    let mut bytes = Vec::new();
    play(segments, &mut Exporter::new(&mut bytes, Compression::None).unwrap());
    bytes
}

fn gunzip(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    flate2::read::MultiGzDecoder::new(bytes).read_to_end(&mut out).unwrap();
    out
}

fn corpus(name: &str) -> Vec<u8> {
    gunzip(&std::fs::read(format!("{OWN}/{name}")).unwrap())
}

/// The weights of the samples of a document.
fn weights(bytes: &[u8], asked: Option<&str>) -> Weights {
    let (mut tables, mut weights) = (Tables::default(), Weights::new(asked));
    import(bytes, &ReadOptions::default(), &mut tables, &mut weights).unwrap();
    weights
}

fn sample(names_leaf_first: &[&str], count: u64) -> PlainSample {
    let frames_leaf_first = names_leaf_first.iter().map(|name| named(name)).collect();
    PlainSample { frames_leaf_first, count, ..PlainSample::default() }
}

fn segment(period_ns: Option<u64>, samples: Vec<PlainSample>) -> PlainSegment {
    PlainSegment { period_ns, samples, ..PlainSegment::default() }
}

/// Counts by all other properties, in order of first appearance.
fn totals(samples: &[PlainSample]) -> Vec<PlainSample> {
    let mut totals: Vec<PlainSample> = Vec::new();
    for sample in samples {
        let same =
            |total: &&mut PlainSample| PlainSample { count: sample.count, ..(**total).clone() } == *sample;
        match totals.iter_mut().find(same) {
            Some(total) => total.count = total.count.saturating_add(sample.count),
            None => totals.push(sample.clone()),
        }
    }
    totals
}

#[test]
fn every_file_of_reli_holds_as_many_samples_as_reli_read() {
    let manifest = std::fs::read(format!("{CONVERTED}/../../MANIFEST.json")).unwrap();
    let manifest: serde_json::Value = serde_json::from_slice(&manifest).unwrap();
    let mut files = 0;
    for entry in manifest["files"].as_array().unwrap() {
        let Some(file) = entry["converters"]["pprof-raw"]["file"].as_str() else { continue };
        let bytes = std::fs::read(format!("{CONVERTED}/../../{file}")).unwrap();
        let collect = read(&bytes);
        // If its rbt reader failed, reli's converters read the file as text.
        let expected = match &entry["strict"]["error"] {
            serde_json::Value::Null => entry["strict"]["samples"].as_u64().unwrap(),
            _ => folded_count(&file.replace(".pprof", ".folded")),
        };
        assert_eq!(collect.count(), expected, "{file}");
        assert_eq!(collect.segments[0].value_types, [], "{file}");
        let period_us = entry["strict"]["period_us"].as_u64().filter(|&period| period > 0).unwrap_or(10_000);
        assert_eq!(collect.segments[0].period_ns, Some(period_us * 1000), "{file}");
        files += 1;
    }
    assert!(files > 60, "{files} files");
}

/// The samples of the folded file that reli wrote for this input.
fn folded_count(file: &str) -> u64 {
    let lines = std::fs::read(format!("{CONVERTED}/../../{file}")).unwrap();
    let counts =
        lines.split(|&byte| byte == b'\n').filter_map(|line| line.rsplit(|&byte| byte == b' ').next());
    counts.filter_map(|count| std::str::from_utf8(count).ok()?.parse::<u64>().ok()).sum()
}

#[test]
fn a_file_of_reli_holds_the_frames_that_its_writer_put_in() {
    let collect = read(&std::fs::read(format!("{CONVERTED}/native.rbt.pprof")).unwrap());
    let frames = &collect.segments[0].samples[0].frames_leaf_first;
    let places: Vec<_> =
        frames.iter().map(|frame| (&*frame.function, frame.file.as_deref(), frame.line)).collect();
    assert_eq!(
        places,
        [
            ("__poll", Some("libc.so.6"), Some(0)),
            ("php_poll", Some("libphp.so"), Some(0)),
            ("zend_execute", Some("libphp.so"), Some(0)),
            ("Foo\\bar", Some("/f.php"), Some(3)),
            ("main", Some("php"), Some(0)),
            ("_start", Some(""), Some(0)),
        ]
    );
    let unknown = read(&std::fs::read(format!("{CONVERTED}/lineno_negative.rbt.pprof")).unwrap());
    let lines: Vec<_> = unknown.samples().map(|sample| sample.frames_leaf_first[0].line).collect();
    assert_eq!(lines, [None, Some(-2), Some(i64::MIN), Some(0), Some(i64::MAX), Some(2_147_483_648)]);
}

#[test]
fn mixed_periods_weigh_each_sample_by_its_own() {
    let segments = [segment(Some(10), vec![sample(&["a"], 3)]), segment(Some(7), vec![sample(&["a"], 2)])];
    let collect = read(&write(&segments));
    let read = &collect.segments[0];
    assert_eq!(read.value_types, [("wall".to_owned(), "nanoseconds".to_owned())]);
    assert_eq!((read.samples[0].count, &*read.samples[0].values), (5, &[44][..]));
    assert!(read.metadata.contains(&("sampling_periods_ns".to_owned(), "10,7".to_owned())));
    // 5 samples of 10 ns are not 44 ns.
    assert_eq!(read.period_ns, None);
}

#[test]
fn samples_are_grouped_into_segments_by_period() {
    let periods = [Some(10), Some(7), None];
    let segments =
        periods.map(|period| segment(period, vec![sample(&[if period.is_some() { "a" } else { "c" }], 3)]));
    let mut segments = segments.to_vec();
    segments[1].samples[0].frames_leaf_first[0] = named("b");
    let collect = read(&write(&segments));
    let found: Vec<_> = collect.segments.iter().map(|read| (read.period_ns, read.samples.clone())).collect();
    let expected: Vec<_> =
        segments.iter().map(|written| (written.period_ns, written.samples.clone())).collect();
    assert_eq!(found, expected);
    let mut said = collect.segments.iter().flat_map(|read| &read.metadata);
    assert!(said.all(|(key, _)| key != "sampling_periods_ns"));
    assert!(collect.segments.iter().all(|read| read.value_types.is_empty()));
}

#[test]
fn without_a_period_no_time_is_claimed() {
    let collect = read(&write(&[segment(None, vec![sample(&["a"], 3)])]));
    assert_eq!(collect.segments[0].value_types, []);
    assert_eq!(collect.segments[0].period_ns, None);
    assert_eq!(collect.count(), 3);
}

#[test]
fn values_of_the_samples_are_kept_and_no_wall_time_is_added_to_a_measured_time() {
    let cpu = PlainSegment {
        value_types: vec![("cpu".into(), "nanoseconds".into()), ("alloc".into(), "bytes".into())],
        samples: vec![
            PlainSample { values: vec![5, -7], ..sample(&["a"], 2) },
            PlainSample { values: vec![6, 3], ..sample(&["a"], 1) },
        ],
        ..segment(Some(1000), vec![])
    };
    let collect = read(&write(std::slice::from_ref(&cpu)));
    assert_eq!(collect.segments[0].value_types, cpu.value_types);
    assert_eq!(collect.segments[0].samples, [PlainSample { values: vec![11, -4], ..sample(&["a"], 3) }]);
}

#[test]
fn durations_are_spans_with_times_and_the_longest_timeline_without() {
    let duration = |segments: &[PlainSegment]| {
        let collect = read(&write(segments));
        let mut pairs = collect.segments[0].metadata.clone().into_iter();
        pairs.find(|(key, _)| key == "duration_ns").map(|(_, value)| value.parse::<u64>().unwrap())
    };
    let of = |process, count| PlainSample { process: Some(process), ..sample(&["a"], count) };
    let untimed = segment(Some(10), vec![of(1, 3), of(2, 5), of(1, 1)]);
    assert_eq!(duration(&[untimed]), Some(50));
    let at = |time_ns| PlainSample { time_ns: Some(time_ns), ..sample(&["a"], 1) };
    let timed = PlainSegment { has_times: true, ..segment(Some(10), vec![at(100), at(70), at(400)]) };
    assert_eq!(duration(&[timed]), Some(340));
    assert_eq!(duration(&[segment(None, vec![of(1, 3)])]), None);
}

#[test]
fn durations_that_inputs_state_are_added_up_and_those_of_one_input_are_not() {
    let stating = |duration_ns: &str| PlainSegment {
        metadata: vec![("duration_ns".to_owned(), duration_ns.to_owned())],
        ..segment(None, vec![sample(&["a"], 1)])
    };
    let [five, seven] = ["5", "7"].map(stating);
    for (inputs, sum) in [
        (&[std::slice::from_ref(&five), std::slice::from_ref(&five)][..], 10),
        (&[&[five.clone(), seven.clone(), five.clone()][..], std::slice::from_ref(&seven)], 14),
    ] {
        let mut bytes = Vec::new();
        play_inputs(inputs, &mut Exporter::new(&mut bytes, Compression::None).unwrap());
        let stated = ("duration_ns".to_owned(), sum.to_string());
        assert!(read(&bytes).segments[0].metadata.contains(&stated), "{sum}");
        let mut document = Vec::new();
        play_inputs(
            inputs,
            &mut otlp::Exporter::new(&mut document, || Ok(Box::new(io::Cursor::new(Vec::new())))),
        );
        let import = |tables: &mut Tables, sink: &mut Collect| {
            otlp::import(document.as_slice(), &ReadOptions::default(), tables, sink)
        };
        assert_eq!(collected(import).unwrap().0.segments[0].metadata, [stated]);
    }
}

#[test]
fn losses_are_counted() {
    let timed = PlainSample { time_ns: Some(4), ..sample(&["a"], 6) };
    let mut bytes = Vec::new();
    let mut exporter = Exporter::new(&mut bytes, Compression::Gzip).unwrap();
    play(&[segment(None, vec![timed])], &mut exporter);
    assert_eq!(exporter.losses().to_string(), "timestamps dropped: 6");
    let many = vec![sample(&["a"], u64::MAX), sample(&["b"], 1)];
    let mut exporter = Exporter::new(Vec::new(), Compression::Gzip).unwrap();
    play(&[segment(None, many)], &mut exporter);
    assert_eq!(exporter.losses().to_string(), "sums beyond 64 bits dropped: 1");
}

#[test]
fn every_flag_of_a_threads_state_comes_back() {
    let samples = (0..=u8::MAX).map(|flags| PlainSample { status: Some(flags), ..sample(&["a"], 1) });
    let samples: Vec<_> = samples.collect();
    assert_eq!(read(&write(&[segment(None, samples.clone())])).segments[0].samples, samples);
}

#[test]
fn gzip_holds_the_same_document_and_no_time() {
    let segments = [segment(Some(10), vec![sample(&["a", "b"], 3)])];
    let mut zipped = Vec::new();
    play(&segments, &mut Exporter::new(&mut zipped, Compression::Gzip).unwrap());
    assert_eq!(zipped[..8], [0x1f, 0x8b, 8, 0, 0, 0, 0, 0]);
    assert_eq!(gunzip(&zipped), write(&segments));
}

/// A document of two samples, built by hand: tag and length before each message.
fn small_document() -> Vec<u8> {
    let mut bytes = Vec::new();
    for string in ["", "samples", "count", "f", "file"] {
        bytes.extend([0x32, u8::try_from(string.len()).unwrap()]);
        bytes.extend(string.bytes());
    }
    bytes.extend([0x0a, 4, 0x08, 1, 0x10, 2]); // sample type
    bytes.extend([0x2a, 6, 0x08, 1, 0x10, 3, 0x20, 4]); // function 1
    bytes.extend([0x22, 8, 0x08, 1, 0x22, 4, 0x08, 1, 0x10, 9]); // location 1
    bytes.extend([0x12, 4, 0x08, 1, 0x10, 5]); // unpacked sample
    bytes.extend([0x12, 7, 0x0a, 2, 1, 1, 0x12, 1, 6]); // packed sample
    bytes
}

#[test]
fn packed_and_unpacked_numbers_and_unknown_fields_are_read() {
    let mut bytes = small_document();
    bytes.extend([0xa2, 0x06, 2, 1, 2]); // field 100, bytes
    bytes.extend([0xa9, 0x06, 0, 0, 0, 0, 0, 0, 0, 0]); // field 101, 64 bits
    bytes.extend([0xb5, 0x06, 0, 0, 0, 0]); // field 102, 32 bits
    let frame = PlainFrame { file: Some("file".into()), line: Some(9), ..named("f") };
    let sample = |depth, count| PlainSample {
        frames_leaf_first: vec![frame.clone(); depth],
        count,
        ..PlainSample::default()
    };
    assert_eq!(read(&bytes).segments[0].samples, [sample(1, 5), sample(2, 6)]);
}

#[test]
fn bad_documents_are_reported_with_kind_and_offset() {
    let end = small_document().len() as u64;
    let with = |tail: &[u8]| {
        let bytes = [&small_document(), tail].concat();
        let error = read_with(&bytes, &ReadOptions::default()).unwrap_err();
        (error.offset().unwrap() - end, error.message().to_owned())
    };
    let cases: [(&[u8], u64, &str); 10] = [
        (&[0x13], 0, "expected wire type 0, 1, 2 or 5, found 3"),
        (&[0x00, 0x00], 0, "expected a field number, found 0"),
        (&[0x10, 0x01], 0, "expected a message in field 2, found a number"),
        (&[0x12, 2, 0x0d, 0], 3, "expected 3 more bytes in the message"),
        (&[0x12, 4, 0x08, 7, 0x10, 1], 0, "expected a known location id, found 7"),
        (&[0x12, 2, 0x08, 1], 0, "expected 1 values in a sample, found 0"),
        (&[0x22, 2, 0x08, 1], 0, "expected a new location id, found 1 twice"),
        (&[0x22, 0], 0, "expected a location id above 0, found 0"),
        (
            &[0x48, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f],
            1,
            "expected a varint of at most 64 bits, found more",
        ),
        (&[0x12, 9, 0x08], 2, "truncated: 8 bytes missing"),
    ];
    for (tail, offset, message) in cases {
        let found = with(tail);
        assert_eq!(found, (offset, message.to_owned()), "{tail:x?}");
    }
}

#[test]
fn a_document_above_the_limit_is_refused() {
    let bytes = small_document();
    let limits = Limits { memory_bytes: bytes.len() - 1, ..Limits::default() };
    let error = read_with(&bytes, &ReadOptions { limits, ..ReadOptions::lenient() }).unwrap_err();
    assert!(error.is_memory() && error.offset().is_some(), "{error}");
}

#[test]
fn inlined_frames_cannot_multiply_beyond_the_size_of_the_document() {
    let mut bytes = small_document();
    let lines = [0x22, 2, 0x08, 1].repeat(20_000);
    let location = [&[0x08, 2][..], &lines].concat();
    bytes.push(0x22);
    borehole_wire::put_varint(&mut bytes, location.len() as u64);
    bytes.extend(location);
    for _ in 0..20_000 {
        bytes.extend([0x12, 4, 0x08, 2, 0x10, 1]);
    }
    let (mut tables, mut count) = (Tables::default(), Count::default());
    let error = import(&*bytes, &ReadOptions::lenient(), &mut tables, &mut count).unwrap_err();
    assert!(matches!(&error, ReadError::Input(error) if error.is_limit()), "{error}");
}

#[test]
fn inlined_functions_come_before_their_caller() {
    let mut bytes = small_document();
    bytes.extend([0x32, 1, b'g']); // string 5
    bytes.extend([0x2a, 4, 0x08, 2, 0x10, 5]); // function 2: g
    bytes.extend([0x22, 10, 0x08, 2, 0x22, 2, 0x08, 2, 0x22, 2, 0x08, 1]); // location 2: g inlined in f
    bytes.extend([0x22, 5, 0x08, 3, 0x18, 0xab, 0x01]); // location 3: an address
    bytes.extend([0x12, 7, 0x0a, 2, 2, 3, 0x12, 1, 1]);
    let collect = read(&bytes);
    let names: Vec<_> =
        collect.segments[0].samples[2].frames_leaf_first.iter().map(|frame| &*frame.function).collect();
    assert_eq!(names, ["g", "f", "0xab"]);
}

#[test]
fn every_prefix_and_every_changed_byte_is_survived() {
    let native = std::fs::read(format!("{CONVERTED}/native.rbt.pprof")).unwrap();
    let labelled = PlainSample {
        process: Some(7),
        thread: Some(9),
        status: Some(3),
        labels: vec![PlainLabel::Text("q".into(), "x".into()), PlainLabel::Number("n".into(), 3, None)],
        ..sample(&["a", "b"], 3)
    };
    let ours = write(&[segment(Some(10), vec![labelled, sample(&["c"], 1)])]);
    for bytes in [&native, &ours, &small_document()] {
        let whole = read(bytes).count();
        for end in 0..bytes.len() {
            let _ = read_with(&bytes[..end], &ReadOptions::default());
            if let Ok((collect, recovery)) = read_with(&bytes[..end], &ReadOptions::lenient()) {
                assert!(collect.count() <= whole);
                assert_eq!(collect.count(), recovery.samples);
            }
        }
        let mut changed = bytes.clone();
        for at in 0..bytes.len() {
            for bit in 0..8 {
                changed[at] = bytes[at] ^ (1 << bit);
                let _ = read_with(&changed, &ReadOptions::default());
                let _ = read_with(&changed, &ReadOptions::lenient());
            }
            changed[at] = bytes[at];
        }
    }
}

#[test]
fn a_truncated_document_yields_its_complete_samples() {
    let of = |process| PlainSample { process: Some(process), ..sample(&["leaf", "root"], 2) };
    let samples = (0..50).map(of).collect();
    let bytes = write(&[segment(None, samples)]);
    let cut = &bytes[..bytes.len() * 3 / 4];
    assert!(read_with(cut, &ReadOptions::default()).unwrap_err().is_truncated());
    let (collect, recovery) = read_with(cut, &ReadOptions::lenient()).unwrap();
    assert!(collect.samples().count() > 20, "{}", collect.samples().count());
    assert_eq!((recovery.warnings.len(), collect.warnings), (1, 1));
    assert!(recovery.lost_bytes > 0);
}

/// A field of a message in its encoded form.
#[derive(Clone, Debug, PartialEq)]
enum Raw {
    Number(u32, u64),
    Bytes(u32, Vec<u8>),
}

fn put(out: &mut Vec<u8>, field: &Raw) {
    match field {
        Raw::Number(number, value) => {
            borehole_wire::put_varint(out, u64::from(*number) << 3);
            borehole_wire::put_varint(out, *value);
        }
        Raw::Bytes(number, bytes) => {
            borehole_wire::put_varint(out, u64::from(*number) << 3 | 2);
            borehole_wire::put_varint(out, bytes.len() as u64);
            out.extend_from_slice(bytes);
        }
    }
}

fn message(fields: &[Raw]) -> Vec<u8> {
    let mut out = Vec::new();
    fields.iter().for_each(|field| put(&mut out, field));
    out
}

fn fields(bytes: &[u8]) -> Vec<Raw> {
    let (mut fields, mut cursor) = (Vec::new(), borehole_wire::Cursor::new(bytes, 0));
    while !cursor.is_empty() {
        let tag = cursor.varint().unwrap();
        let number = u32::try_from(tag >> 3).unwrap();
        let value = cursor.varint().unwrap();
        fields.push(match tag & 7 {
            0 => Raw::Number(number, value),
            _ => Raw::Bytes(number, cursor.bytes(usize::try_from(value).unwrap()).unwrap().to_vec()),
        });
    }
    fields
}

/// The contents of a document, read without the reader.
#[derive(Clone, Debug, Default, PartialEq)]
struct Said {
    types: Vec<(String, String)>,
    /// The values by label `row`.
    rows: std::collections::BTreeMap<u64, Vec<i64>>,
    time: u64,
    duration: u64,
    period_type: Option<(String, String)>,
    period: i64,
    comments: Vec<String>,
    default_type: String,
    doc_url: String,
}

/// The document with these contents: a sample per row, all of the function `f`.
fn document(said: &Said) -> Vec<u8> {
    let mut strings = vec![String::new(), "f".to_owned(), "row".to_owned()];
    let mut string = |text: &str| {
        let known = strings.iter().position(|known| known == text);
        known.unwrap_or_else(|| {
            strings.push(text.to_owned());
            strings.len() - 1
        }) as u64
    };
    let mut value_type = |(kind, unit): &(String, String)| {
        message(&[Raw::Number(1, string(kind)), Raw::Number(2, string(unit))])
    };
    let mut out: Vec<_> = said.types.iter().map(|row| Raw::Bytes(1, value_type(row))).collect();
    out.extend(said.period_type.iter().map(|row| Raw::Bytes(11, value_type(row))));
    out.extend(said.comments.iter().map(|comment| Raw::Number(13, string(comment))));
    out.push(Raw::Number(14, string(&said.default_type)));
    out.push(Raw::Number(15, string(&said.doc_url)));
    out.extend([Raw::Number(9, said.time), Raw::Number(10, said.duration)]);
    out.push(Raw::Number(12, said.period.cast_unsigned()));
    for (row, values) in &said.rows {
        let label = message(&[Raw::Number(1, 2), Raw::Number(3, *row)]);
        let mut sample = vec![Raw::Number(1, 1), Raw::Bytes(3, label)];
        sample.extend(values.iter().map(|value| Raw::Number(2, value.cast_unsigned())));
        out.push(Raw::Bytes(2, message(&sample)));
    }
    let line = message(&[Raw::Number(1, 1)]);
    out.push(Raw::Bytes(4, message(&[Raw::Number(1, 1), Raw::Bytes(4, line)])));
    out.push(Raw::Bytes(5, message(&[Raw::Number(1, 1), Raw::Number(2, 1)])));
    out.extend(strings.iter().map(|text| Raw::Bytes(6, text.as_bytes().to_vec())));
    message(&out)
}

fn said(bytes: &[u8]) -> Said {
    let all = fields(bytes);
    let strings = all.iter().filter_map(|field| match field {
        Raw::Bytes(6, text) => Some(String::from_utf8(text.clone()).unwrap()),
        _ => None,
    });
    let strings: Vec<String> = strings.collect();
    let string = |index: u64| strings[usize::try_from(index).unwrap()].clone();
    let number = |fields: &[Raw], wanted: u32| {
        let found = fields.iter().find_map(|field| match field {
            Raw::Number(number, value) if *number == wanted => Some(*value),
            _ => None,
        });
        found.unwrap_or(0)
    };
    let value_type = |bytes: &[u8]| {
        let fields = fields(bytes);
        (string(number(&fields, 1)), string(number(&fields, 2)))
    };
    let mut said = Said::default();
    for field in &all {
        match field {
            Raw::Bytes(1, bytes) => said.types.push(value_type(bytes)),
            Raw::Bytes(11, bytes) => said.period_type = Some(value_type(bytes)),
            Raw::Bytes(2, bytes) => {
                let (mut row, mut values) = (None, Vec::new());
                for field in fields(bytes) {
                    match field {
                        Raw::Bytes(3, label) => row = Some(number(&fields(&label), 3)),
                        Raw::Bytes(2, packed) => {
                            let mut cursor = borehole_wire::Cursor::new(&packed, 0);
                            while !cursor.is_empty() {
                                values.push(cursor.varint().unwrap().cast_signed());
                            }
                        }
                        Raw::Number(2, value) => values.push(value.cast_signed()),
                        _ => {}
                    }
                }
                assert_eq!(said.rows.insert(row.unwrap(), values), None);
            }
            Raw::Number(13, index) => said.comments.push(string(*index)),
            _ => {}
        }
    }
    (said.time, said.duration, said.period) =
        (number(&all, 9), number(&all, 10), number(&all, 12).cast_signed());
    (said.default_type, said.doc_url) = (string(number(&all, 14)), string(number(&all, 15)));
    said
}

fn written_again(bytes: &[u8]) -> Vec<u8> {
    let mut again = Vec::new();
    let (mut tables, mut exporter) =
        (Tables::default(), Exporter::new(&mut again, Compression::None).unwrap());
    import(bytes, &ReadOptions::default(), &mut tables, &mut exporter).unwrap();
    borehole_model::ProfileSink::finish(&mut exporter, &tables).unwrap();
    drop(exporter);
    again
}

fn types(names: &[&str]) -> Vec<(String, String)> {
    let split = names.iter().map(|name| name.split_once('/').unwrap());
    split.map(|(kind, unit)| (kind.to_owned(), unit.to_owned())).collect()
}

fn any_said() -> impl Strategy<Value = Said> {
    const NAMES: [&str; 10] = [
        "samples/count",
        "sample/count",
        "wall/nanoseconds",
        "cpu/nanoseconds",
        "cpu/milliseconds",
        "space/bytes",
        "objects/count",
        "/",
        "contentions/count",
        "x/nobody knows",
    ];
    let name = proptest::sample::select(&NAMES[..]);
    let first = prop_oneof![Just("samples/count"), name.clone()];
    let chosen = (first, proptest::collection::vec(name.clone(), 0..5));
    let value = prop_oneof![
        4 => 0..4_i64, 2 => (0..4_i64).prop_map(|count| count * 1000), 1 => any::<i64>(), 1 => Just(i64::MIN),
    ];
    let period =
        (proptest::option::of(name), prop_oneof![Just(1000), Just(1), Just(0), Just(-5), any::<i64>()]);
    (chosen, period, proptest::sample::select(vec!["", "cpu", "wall", "space", "samples", "nobody"]))
        .prop_flat_map(move |((first, rest), (period_type, period), default_type)| {
            let names: Vec<_> = std::iter::once(first).chain(rest).collect();
            let row = proptest::collection::vec(value.clone(), names.len());
            proptest::collection::vec(row, 1..6).prop_map(move |rows| Said {
                types: types(&names),
                rows: (1..).zip(rows).collect(),
                time: 1_700_000_000,
                duration: 77,
                // An empty type counts as absent.
                period_type: period_type.filter(|name| *name != "/").map(|name| types(&[name]).remove(0)),
                period: if period_type.is_some_and(|name| name != "/") { period } else { 0 },
                comments: types(&["c/d"]).into_iter().map(|(one, other)| format!("{one}={other}")).collect(),
                default_type: default_type.to_owned(),
                doc_url: "https://example.org/".to_owned(),
            })
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn columns_and_facts_survive(before in any_said()) {
        let bytes = document(&before);
        let after = said(&written_again(&bytes));
        // Absent facts may be written explicitly, because the tool shows the same.
        let shown = |said: &Said| {
            let named = said.types.iter().position(|(kind, _)| *kind == said.default_type);
            named.unwrap_or(said.types.len() - 1)
        };
        prop_assert_eq!(shown(&after), shown(&before));
        let default_type = after.default_type.clone();
        prop_assert_eq!(&after, &Said { default_type, ..before.clone() });
        // Borehole shows the same number as the tool.
        let weights = weights(&bytes, None);
        let column = shown(&before);
        let factor = match &*before.types[column].1 {
            "milliseconds" => 1_000_000_i64,
            _ => 1,
        };
        let weigh = |sum: i64, values: &Vec<i64>| sum.saturating_add(values[column].saturating_mul(factor));
        let fits = before.rows.values().all(|values| values[column].checked_mul(factor * 8).is_some());
        prop_assert!(!fits || weights.total() == before.rows.values().fold(0, weigh));
    }
}

#[test]
fn a_heap_profile_weighs_its_bytes_and_gets_no_count() {
    let bytes = corpus("go-heap-in-use.pb.gz");
    let before = said_of_types(&bytes);
    let names = ["alloc_objects/count", "alloc_space/bytes", "inuse_objects/count", "inuse_space/bytes"];
    assert_eq!(before, types(&names));
    let weights = |asked| weights(&bytes, asked);
    let shown = weights(None);
    assert_eq!(shown.value_type(), "inuse_space/bytes");
    let percent = 100.0 * shown.sums["main.alloc"] as f64 / shown.total() as f64;
    assert!((percent - 95.8).abs() < 0.05, "{percent}");
    for name in names {
        assert_eq!(weights(Some(name)).value_type(), name);
    }
    let again = written_again(&bytes);
    assert_eq!(said_of_types(&again), before);
    let period = |bytes: &[u8]| {
        let find = |number| {
            fields(bytes).into_iter().find(|field| matches!(field, Raw::Number(found, _) if *found == number))
        };
        find(12)
    };
    assert_eq!(
        (period(&again), period(&bytes)),
        (Some(Raw::Number(12, 524_288)), Some(Raw::Number(12, 524_288)))
    );
    assert_eq!(self::weights(&again, None).sums, shown.sums);
}

fn said_of_types(bytes: &[u8]) -> Vec<(String, String)> {
    let types = fields(bytes).into_iter().filter(|field| matches!(field, Raw::Bytes(1 | 6, _)));
    said(&message(&types.collect::<Vec<_>>())).types
}

#[test]
fn records_with_values_but_no_count_are_uncounted() {
    let before = Said {
        types: types(&["samples/count", "space/bytes"]),
        rows: (1..).zip([vec![3, 30], vec![0, 7], vec![0, 0]]).collect(),
        ..Said::default()
    };
    let bytes = document(&before);
    let segment = &read(&bytes).segments[0];
    assert!(segment.is_uncounted);
    assert_eq!(segment.samples.iter().map(|sample| sample.count).collect::<Vec<_>>(), [1, 1, 1]);
    assert_eq!(weights(&bytes, Some("samples")).total(), 3);
    assert_eq!(weights(&bytes, None).total(), 37);
    let counted = Said { rows: (1..).zip([vec![3, 30], vec![0, 0]]).collect(), ..before };
    let segment = &read(&document(&counted)).segments[0];
    assert!(!segment.is_uncounted);
    assert_eq!(segment.value_types, types(&["space/bytes"]));
}

#[test]
fn the_mode_is_that_of_the_period_or_else_of_the_time_that_is_measured() {
    let mode = |names: &[&str], period: &str| {
        let said = Said {
            types: types(names),
            rows: [(1, vec![1; names.len()])].into(),
            period_type: (!period.is_empty()).then(|| types(&[period]).remove(0)),
            period: 1,
            ..Said::default()
        };
        read(&document(&said)).segments[0].mode
    };
    assert_eq!(mode(&["samples/count", "cpu/nanoseconds"], "cpu/nanoseconds"), Mode::Cpu);
    assert_eq!(mode(&["samples/count"], "cpu/microseconds"), Mode::Cpu);
    assert_eq!(mode(&["cpu/nanoseconds"], ""), Mode::Cpu);
    assert_eq!(mode(&["wall/nanoseconds", "cpu/nanoseconds"], ""), Mode::Wall);
    assert_eq!(mode(&["cpu/count"], "space/bytes"), Mode::Wall);
}

#[test]
fn samples_on_a_cpu_are_written_with_their_cpu_time() {
    let cpu = PlainSegment { mode: Mode::Cpu, ..segment(Some(1000), vec![sample(&["a"], 3)]) };
    let bytes = write(std::slice::from_ref(&cpu));
    assert_eq!(said_of_types(&bytes), types(&["samples/count", "cpu/nanoseconds"]));
    let back = &read(&bytes).segments[0];
    assert_eq!((back.mode, back.period_ns, &back.value_types[..]), (Mode::Cpu, Some(1000), &[][..]));
    assert_eq!((back.default_measure, &back.samples), (Some(Measure::Time), &cpu.samples));
    assert_eq!(weights(&bytes, None).value_type(), "cpu/nanoseconds");
}

#[test]
fn concatenated_documents_are_all_read() {
    let both = corpus("concatenated.pb.gz");
    let half = &both[..both.len() / 2];
    let counts = |bytes: &[u8]| (read(bytes).count(), weights(bytes, Some("cpu")).total());
    let one = counts(half);
    assert!(one.0 > 200, "{one:?}");
    assert_eq!(counts(&both), (2 * one.0, 2 * one.1));
    for bytes in
        [small_document(), write(&[segment(Some(10), vec![sample(&["a", "b"], 3)])]), corpus("go-heap.pb.gz")]
    {
        let three = bytes.repeat(3);
        assert_eq!(read(&three).count(), 3 * read(&bytes).count());
    }
    // Different kinds too, with an error that has a position in the input.
    let other = corpus("go-cpu.pb.gz");
    let mixed = [&other[..], half, &[0x13]].concat();
    let (collect, recovery) = read_with(&mixed, &ReadOptions::lenient()).unwrap();
    assert_eq!(collect.count(), read(&other).count() + one.0);
    assert_eq!(recovery.warnings[0].offset, Some(mixed.len() as u64 - 1));
}

#[test]
fn drop_frames_and_keep_frames_are_applied() {
    let stacks: [&[&str]; 5] = [
        &["leaf", "runtime.mallocgc", "main"],
        &["runtime.mallocgc", "main"],
        &["main", "runtime.start"],
        &["leaf", "runtime.keep", "main"],
        &["main"],
    ];
    let bytes = write(&[segment(None, stacks.iter().map(|stack| sample(stack, 1)).collect())]);
    let stacks_of = |drop: &str, keep: &str| {
        // Indexes count from the end of the document's strings.
        let count = fields(&bytes).iter().filter(|field| matches!(field, Raw::Bytes(6, _))).count() as u64;
        let more = [
            Raw::Bytes(6, drop.into()),
            Raw::Bytes(6, keep.into()),
            Raw::Number(7, count),
            Raw::Number(8, count + 1),
        ];
        let (collect, recovery) =
            read_with(&[bytes.clone(), message(&more)].concat(), &ReadOptions::default()).unwrap();
        let stack = |sample: &PlainSample| {
            sample.frames_leaf_first.iter().map(|frame| frame.function.clone()).collect::<Vec<_>>().join(" ")
        };
        (collect.samples().map(stack).collect::<Vec<_>>(), recovery.notes.len())
    };
    let all: Vec<_> = stacks.iter().map(|stack| stack.join(" ")).collect();
    assert_eq!(stacks_of("", ""), (all.clone(), 0));
    let dropped = ["main", "main", "main runtime.start", "leaf runtime.keep main", "main"].map(str::to_owned);
    assert_eq!(stacks_of(r"runtime\..*", r"runtime\.keep"), (dropped.to_vec(), 0));
    assert_eq!(stacks_of("runtime", ""), (all.clone(), 0));
    assert_eq!(stacks_of("main|leaf", "").0[0], "runtime.mallocgc main");
    assert_eq!(stacks_of("(", ""), (all, 1));
}

#[test]
fn many_value_types_are_kept() {
    let count = 20_000;
    let before = Said {
        types: (0..count).map(|kind| (format!("k{}", kind % 7_000), "u".to_owned())).collect(),
        rows: [(1, (0..count).collect())].into(),
        ..Said::default()
    };
    assert_eq!(said(&written_again(&document(&before))), before);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a_profile_survives_a_round_trip(samples in any_samples(), period in proptest::option::of(1..1_000_u64)) {
        let written = segment(period.map(|period| period * 1000), samples);
        let collect = read(&write(std::slice::from_ref(&written)));
        let read = &collect.segments[0];
        prop_assert_eq!(&read.samples, &totals(&written.samples));
        if !written.samples.is_empty() {
            prop_assert_eq!(read.period_ns, written.period_ns);
        }
        prop_assert!(read.value_types.is_empty());
        // A read document is written to the same bytes.
        let again = write(&collect.segments);
        let second = read_with(&again, &ReadOptions::default()).unwrap().0;
        prop_assert_eq!(&second.segments[0].samples, &read.samples);
    }

    #[test]
    fn any_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = read_with(&bytes, &ReadOptions::default());
        let _ = read_with(&bytes, &ReadOptions::lenient());
    }
}

/// The output of Go's pprof for a document.
fn shown(pprof: &Peer, bytes: &[u8], arguments: &[&str]) -> String {
    let scratch = Scratch::new();
    let file = scratch.write("profile.pb.gz", bytes);
    pprof.stdout(&[arguments, &[&file.to_string_lossy()]].concat())
}

fn peer_profile() -> Vec<PlainSegment> {
    let place = |function: &str, file: &str, line| PlainFrame {
        file: Some(file.to_owned()),
        line,
        ..named(function)
    };
    let native = |function: &str, module: &str, offset| PlainFrame {
        native: Some((module.to_owned(), Some(offset))),
        ..named(function)
    };
    let main = place("<main>", "/app/index.php", Some(3));
    let query = place("App\\Db::query", "/app/Db.php", Some(42));
    let unknown = place("strlen", "<internal>", None);
    let poll = native("__poll", "libc.so.6", 17);
    let nowhere = native("mystery", "", 5);
    let of = |process, frames_leaf_first: Vec<PlainFrame>, count| PlainSample {
        frames_leaf_first,
        count,
        process: Some(process),
        ..PlainSample::default()
    };
    let annotated = PlainSample {
        thread: Some(9),
        labels: vec![PlainLabel::Text("query".into(), "SELECT 1".into())],
        ..of(7, vec![poll, query.clone(), main.clone()], 20)
    };
    let first = segment(
        Some(10_000_000),
        vec![
            annotated,
            of(7, vec![query.clone(), main.clone()], 30),
            of(8, vec![unknown, query.clone(), query, main.clone()], 5),
        ],
    );
    let second = segment(Some(1_000_000), vec![of(8, vec![nowhere, main], 1000)]);
    vec![first, second]
}

#[test]
fn go_pprof_agrees_on_totals_and_top_functions() {
    let Some(pprof) = peer("pprof") else { return };
    let mut bytes = Vec::new();
    play(&peer_profile(), &mut Exporter::new(&mut bytes, Compression::Gzip).unwrap());
    let top = shown(&pprof, &bytes, &["-top", "-sample_index=samples"]);
    assert!(top.contains("Type: samples"), "{top}");
    assert!(top.contains("of 1055 total"), "{top}");
    for line in [
        "1000 94.79% 94.79%       1000 94.79%  mystery",
        "30  2.84% 97.63%         55  5.21%  App\\Db::query",
        "0     0%   100%       1055   100%  <main>",
    ] {
        assert!(top.contains(line), "{line}\n{top}");
    }
    // 55 samples of 10 ms and 1000 of 1 ms, in the order of the default sample type.
    let wall = shown(&pprof, &bytes, &["-top"]);
    assert!(wall.contains("Type: wall"), "{wall}");
    assert!(wall.contains("Duration: 1.05s, Total samples = 1550ms"), "{wall}");
    assert!(wall.contains("1000ms 64.52% 64.52%     1000ms 64.52%  mystery"), "{wall}");
}

#[test]
fn go_pprof_reads_locations_mappings_and_labels() {
    let Some(pprof) = peer("pprof") else { return };
    let raw = shown(&pprof, &write(&peer_profile()), &["-raw"]);
    for line in [
        "PeriodType: wall nanoseconds",
        "Period: 10000000",
        "samples/count wall/nanoseconds[dflt]",
        "20  200000000: 1 2 3",
        "query:[SELECT 1]",
        "pid:[7]",
        "thread:[9]",
        "1: 0x11 M=1 __poll :0:0 s=0",
        "2: 0x0 App\\Db::query /app/Db.php:42:0 s=0",
        "3: 0x0 <main> /app/index.php:3:0 s=0",
        "4: 0x0 strlen <internal>:0:0 s=0",
        "5: 0x5 M=2 mystery :0:0 s=0",
        "libc.so.6  [FN]",
        "sampling_periods_ns=10000000,1000000",
    ] {
        assert!(raw.contains(line), "{line}\n{raw}");
    }
    let traces = shown(&pprof, &write(&peer_profile()), &["-traces", "-sample_index=samples"]);
    assert!(traces.contains("App\\Db::query"), "{traces}");
    let tagged =
        shown(&pprof, &write(&peer_profile()), &["-top", "-tagfocus=pid=8", "-sample_index=samples"]);
    assert!(tagged.contains("1005, 95.26% of 1055 total"), "{tagged}");
}

/// Go's own profiler wrote this one; the sums of the tool are compared with ours.
#[test]
fn a_profile_of_gos_own_holds_what_the_tool_counts() {
    let Some(pprof) = peer("pprof") else { return };
    let zipped = std::fs::read(format!("{OWN}/go-cpu.pb.gz")).unwrap();
    let collect = read(&gunzip(&zipped));
    let segment = &collect.segments[0];
    // The CPU time is the count times the period, in every sample.
    assert_eq!((&segment.value_types[..], segment.mode), (&[][..], Mode::Cpu));
    let raw = shown(&pprof, &zipped, &["-raw"]);
    let rows = raw.lines().skip_while(|line| !line.starts_with("samples/count")).skip(1);
    let rows = rows.take_while(|line| !line.starts_with("Locations")).filter(|line| line.contains(": "));
    let mut sums = (0, 0, 0);
    for row in rows {
        let mut numbers = row.split_whitespace().map(|number| number.trim_end_matches(':').parse::<i64>());
        let (Some(Ok(count)), Some(Ok(cpu))) = (numbers.next(), numbers.next()) else { continue };
        sums = (sums.0 + 1, sums.1 + count, sums.2 + cpu);
    }
    let ours = (
        i64::try_from(segment.samples.len()).unwrap(),
        i64::try_from(collect.count()).unwrap(),
        weights(&gunzip(&zipped), Some("cpu")).total(),
    );
    assert_eq!(ours, sums);
    assert!(sums.1 > 0);
    // After rewriting, the tool still shows the same cpu time.
    let top = shown(&pprof, &write(&collect.segments), &["-top"]);
    let before = shown(&pprof, &zipped, &["-top"]);
    let table = |text: &str| {
        text.lines().skip_while(|line| !line.contains("flat%")).map(str::to_owned).collect::<Vec<_>>()
    };
    // Inlining is not kept.
    assert_eq!(table(&top), table(&before.replace(" (inline)", "")));
}

#[test]
fn a_heap_profile_of_gos_own_keeps_its_types_and_default() {
    let Some(pprof) = peer("pprof") else { return };
    for name in ["go-heap.pb.gz", "go-heap-in-use.pb.gz"] {
        is_the_same_heap_to_the_tool(&pprof, &std::fs::read(format!("{OWN}/{name}")).unwrap());
    }
}

fn is_the_same_heap_to_the_tool(pprof: &Peer, zipped: &[u8]) {
    let collect = read(&gunzip(zipped));
    let kinds: Vec<_> = collect.segments[0].value_types.iter().map(|(kind, _)| &**kind).collect();
    assert_eq!(kinds, ["alloc_objects", "alloc_space", "inuse_objects", "inuse_space"]);
    assert_eq!(collect.segments[0].period_ns, None);
    let again = write(&collect.segments);
    for kind in kinds {
        let arguments = ["-top", &format!("-sample_index={kind}")];
        let table = |text: String| {
            let lines = text.lines().skip_while(|line| !line.contains("flat%")).map(str::to_owned);
            lines.map(|line| line.replace(" (inline)", "")).collect::<Vec<_>>()
        };
        let before = shown(pprof, zipped, &arguments);
        let after = shown(pprof, &again, &arguments);
        assert!(table(before.clone()).len() > 1, "{before}");
        assert_eq!(table(after), table(before));
    }
    // The periods are equal; the tool compares them.
    let header = |text: String| {
        text.lines().take_while(|line| !line.starts_with("Samples:")).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(header(shown(pprof, &again, &["-raw"])), header(shown(pprof, zipped, &["-raw"])));
}
