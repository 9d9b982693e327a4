//! Statistics of cProfile, compared with what Python's own `pstats` says of them.

use std::collections::BTreeMap;

use borehole_formats::{Error, Export as _, Format, ReadOptions, detect, pstats};
use borehole_model::{Context, ProfileSink as _, Recovery, Segment, Tables};
use borehole_testkit::read_corpus;
use serde_json::Value;

use crate::damage::each_change;
use crate::flat::{FlatFrame, FlatSample, play};
use crate::play::{Collect, collected};

/// The releases of Python that wrote the corpus.
const RELEASES: [&str; 7] = ["3.8", "3.9", "3.10", "3.11", "3.12", "3.13", "3.15"];

fn read_with(bytes: &[u8], options: &ReadOptions) -> Result<(Collect, Recovery), Error> {
    collected(|tables, sink| pstats::import(bytes, options, tables, sink))
}

fn read(release: &str) -> (Collect, Recovery) {
    let bytes = read_corpus(&format!("pstats/{release}.pstats"));
    assert_eq!(detect::detect(&bytes), Some(Format::Pstats));
    read_with(&bytes, &ReadOptions::default()).unwrap()
}

/// File, line and name of a function.
type Function = (String, i64, String);

fn function(key: &Value) -> Function {
    let text = |at: usize| key[at].as_str().unwrap().to_owned();
    (text(0).replace('~', ""), key[1].as_i64().unwrap(), text(2))
}

/// The sums of `pstats` in the order of our values: calls, primitive calls, nanoseconds with and without what is called.
fn sums(row: &Value, order: [usize; 4]) -> [i64; 4] {
    #[expect(clippy::cast_possible_truncation, reason = "whole nanoseconds of less than a day")]
    let nanoseconds = |at: usize| (row[at].as_f64().unwrap() * 1e9).round() as i64;
    let count = |at: usize| row[at].as_i64().unwrap();
    [count(order[0]), count(order[1]), nanoseconds(order[2]), nanoseconds(order[3])]
}

fn leaf_of(frames: &[crate::play::PlainFrame], at: usize) -> Option<Function> {
    let frame = frames.get(at)?;
    Some((frame.file.clone().unwrap_or_default(), frame.line.unwrap_or(0), frame.function.clone()))
}

#[test]
fn sums_of_functions_are_those_of_pstats() {
    for release in RELEASES {
        let (collect, _) = read(release);
        let mut ours = BTreeMap::new();
        for sample in collect.samples() {
            let sum: &mut [i64; 4] = ours.entry(leaf_of(&sample.frames_leaf_first, 0).unwrap()).or_default();
            sum.iter_mut().zip(&sample.values).for_each(|(sum, value)| *sum += value);
        }
        let rows: Vec<Value> =
            serde_json::from_slice(&read_corpus(&format!("pstats/{release}.json"))).unwrap();
        assert!(rows.len() > 10);
        let theirs: BTreeMap<_, _> =
            rows.iter().map(|row| (function(&row[0]), sums(&row[1], [1, 0, 3, 2]))).collect();
        assert_eq!(ours, theirs, "{release}");
    }
}

#[test]
fn calls_by_caller_are_those_of_pstats() {
    for release in RELEASES {
        let (collect, recovery) = read(release);
        let rows: Vec<Value> =
            serde_json::from_slice(&read_corpus(&format!("pstats/{release}.json"))).unwrap();
        let mut pairs = 0;
        for row in &rows {
            for caller in row[2].as_array().unwrap() {
                let (callee, calling) = (function(&row[0]), function(&caller[0]));
                // Calls come first here, unlike in the sums of functions.
                let [calls, _, total_ns, self_ns] = sums(&caller[1], [0, 1, 3, 2]);
                let found = collect.samples().find(|sample| {
                    leaf_of(&sample.frames_leaf_first, 0).as_ref() == Some(&callee)
                        && leaf_of(&sample.frames_leaf_first, 1).as_ref() == Some(&calling)
                });
                let values = &found.unwrap_or_else(|| panic!("{calling:?} calls {callee:?}")).values;
                // Rounding may take a nanosecond from the largest of them.
                assert!(
                    (values[0], (values[3] - self_ns).abs() <= 2) == (calls, true),
                    "{release} {callee:?}"
                );
                let is_in_circle = ["fib", "even", "odd"].contains(&&*callee.2);
                assert!(is_in_circle || (values[2] - total_ns).abs() <= 2, "{release} {callee:?}");
                pairs += 1;
            }
        }
        assert!(pairs > 10);
        // Two functions that call each other.
        assert_eq!(recovery.notes.len(), 1, "{:?}", recovery.notes);
        assert!(recovery.notes[0].message.contains("is not divided among callers"));
    }
}

#[test]
fn samples_of_a_sampling_profiler_are_counts() {
    let bytes = b"{)\x01z\x0b__sampled__T)\x03z\x05/a.pyi\x07\0\0\0z\x01f)\x05i\x02\0\0\0i\x09\0\0\0\
        g\0\0\0\0\0\0\xe0?g\0\0\0\0\0\0\xf0?{)\x03z\x05/a.pyi\x03\0\0\0z\x01gi\x09\0\0\x00000";
    assert_eq!(detect::detect(bytes), Some(Format::Pstats));
    let (collect, recovery) = read_with(bytes, &ReadOptions::default()).unwrap();
    let samples: Vec<_> = collect.samples().map(|sample| (sample.count, &sample.values[..])).collect();
    assert_eq!(samples, [(2, &[9, 1_000_000_000, 500_000_000][..])]);
    assert_eq!(recovery.samples, 2);
    assert!(recovery.notes[0].message.starts_with("callers of 1 functions are dropped"));
}

/// A function with the four numbers and the callers that these bytes are.
fn function_with(numbers: &[&[u8]; 4], callers: &[u8]) -> Vec<u8> {
    [b"{)\x03z\x02/ai\x07\0\0\0z\x01f)\x05", &numbers.concat()[..], b"{", callers, b"00"].concat()
}

const ONE: &[u8] = b"i\x01\0\0\0";
const HALF: &[u8] = b"g\0\0\0\0\0\0\xe0?";
const CALLER: &[u8] = b")\x03z\x02/bi\x03\0\0\0z\x01g";

#[test]
fn each_error_says_what_was_expected_and_where() {
    let caller = |sums: &[u8]| function_with(&[ONE, ONE, HALF, HALF], &[CALLER, sums].concat());
    let cases: [(Vec<u8>, &str, Option<u64>); 17] = [
        (ONE.to_vec(), "expected a dictionary of functions, found another object", None),
        (
            b"{)\x03z\x01ai\x01\0\0\0z\x01fN0".to_vec(),
            "expected calls, times and callers of a function, found another object",
            None,
        ),
        (
            b"{)\x01Ni\x01\0\0\x000".to_vec(),
            "expected calls, times and callers of a function, found another object",
            None,
        ),
        (
            [b"{N)\x05", ONE, ONE, HALF, HALF, b"{00"].concat(),
            "expected file, line and name of a function, found another object",
            None,
        ),
        (
            [b"{)\x03z\x01az\x01bz\x01f)\x05", ONE, ONE, HALF, HALF, b"{00"].concat(),
            "expected file, line and name of a function, found another object",
            None,
        ),
        (
            function_with(&[HALF, ONE, HALF, HALF], b""),
            "expected a number of calls, found another object",
            None,
        ),
        (
            function_with(&[ONE, b"N", HALF, HALF], b""),
            "expected a number of calls, found another object",
            None,
        ),
        (function_with(&[ONE, ONE, b"N", HALF], b""), "expected a time, found another object", None),
        (function_with(&[ONE, ONE, HALF, b"T"], b""), "expected a time, found another object", None),
        (caller(b"N"), "expected calls and times of a caller, found another object", None),
        (caller(b")\x01N"), "expected calls and times of a caller, found another object", None),
        (b"{c".to_vec(), "expected an object of statistics, found the type 0x63", Some(1)),
        (b"{r\x02\0\0\0".to_vec(), "reference to an unknown object: 2", Some(1)),
        (b"{s\xff\xff\xff\xff".to_vec(), "expected a length, found -1", Some(2)),
        (
            [&b")\x01".repeat(9)[..], b"N"].concat(),
            "expected statistics, found objects nested 8 deep",
            Some(16),
        ),
        (b"{)\x03".to_vec(), "truncated: 1 bytes missing", Some(3)),
        (b"{g\0\0\0".to_vec(), "truncated: 5 bytes missing", Some(2)),
    ];
    for (bytes, message, offset) in cases {
        let error = read_with(&bytes, &ReadOptions::default()).err().unwrap();
        assert_eq!((error.message(), error.offset()), (message, offset));
        assert_eq!(error.is_truncated(), message.starts_with("truncated"), "{message}");
        let (collect, recovery) = read_with(&bytes, &ReadOptions::lenient()).unwrap();
        assert!(collect.count() == 0 && !recovery.is_clean());
    }
    // One less deep.
    let error = read_with(&[&b")\x01".repeat(8)[..], b"N"].concat(), &ReadOptions::default()).err().unwrap();
    assert_eq!(error.message(), "expected a dictionary of functions, found another object");
}

#[test]
fn numbers_of_functions_and_callers_keep_their_places() {
    let whole = |number: u8| [b'i', number, 0, 0, 0];
    let sums = [&whole(5)[..], &whole(4), &whole(2), &whole(3)];
    let caller = [CALLER, b")\x04", &whole(2), &whole(1), HALF, &whole(1)].concat();
    let bytes = function_with(&[sums[1], sums[0], sums[2], sums[3]], &caller);
    let (collect, recovery) = read_with(&bytes, &ReadOptions::default()).unwrap();
    assert!(recovery.is_clean() && recovery.notes.is_empty());
    let found: Vec<_> = collect
        .samples()
        .map(|sample| (leaf_of(&sample.frames_leaf_first, 1), sample.count, &sample.values[..]))
        .collect();
    let second = 1_000_000_000;
    // Calls and primitive calls of the caller are in the other order than those of the function.
    let of_caller = (Some(("/b".to_owned(), 3, "g".to_owned())), 1, &[2, 1, second, second / 2][..]);
    assert_eq!(found, [of_caller, (None, 1, &[3, 3, 2 * second, 2 * second - second / 2][..])]);
}

#[test]
fn bytes_behind_the_statistics_are_counted() {
    let bytes = function_with(&[ONE, ONE, HALF, HALF], b"");
    for count in 0..3 {
        let longer = [&bytes[..], &b"xxx"[..count]].concat();
        let (collect, recovery) = read_with(&longer, &ReadOptions::default()).unwrap();
        assert_eq!(collect.count(), 1);
        let warnings: Vec<_> =
            recovery.warnings.iter().map(|warning| (&*warning.message, warning.lost_bytes)).collect();
        let expected = ("ignored the bytes after the statistics", count as u64);
        assert_eq!(warnings, Vec::from_iter((count > 0).then_some(expected)));
    }
}

#[test]
fn samples_without_frames_are_counted() {
    for count in 0..3 {
        let none = FlatSample { count, ..FlatSample::default() };
        let one =
            FlatSample { count: 1, frames_leaf_first: vec![FlatFrame::php("f", "/a.py", 3)], ..none.clone() };
        let mut out = Vec::new();
        let mut exporter = pstats::Exporter::new(&mut out);
        play(&[none, one], &Segment::default(), &mut exporter).unwrap();
        let losses: Vec<_> = exporter.losses().iter().collect();
        assert_eq!(losses, Vec::from_iter((count > 0).then_some(("samples without frames", count))));
        drop(exporter);
        assert_eq!(read_with(&out, &ReadOptions::default()).unwrap().0.count(), 1);
    }
}

#[test]
fn no_samples_are_explained_where_threads_may_be_idle() {
    for (mode, more) in [("wall", ""), ("cpu", "This can happen in CPU mode when all threads are idle.\n")] {
        let mut tables = Tables::default();
        let [key, mode] = ["mode", mode].map(|text| tables.intern_string(text.as_bytes()).unwrap());
        let segment = Segment { metadata: vec![(key, mode)], ..Segment::default() };
        let mut out = Vec::new();
        let mut exporter = pstats::Exporter::text(&mut out, pstats::TextOptions::default());
        exporter.segment(Context { tables: &tables, segment: &segment }).unwrap();
        exporter.finish(&tables).unwrap();
        drop(exporter);
        assert_eq!(String::from_utf8(out).unwrap(), format!("No samples were collected.\n{more}"));
    }
}

#[test]
fn every_prefix_and_every_changed_byte_is_survived() {
    let bytes = read_corpus("pstats/3.13.pstats");
    for cut in 0..bytes.len() {
        assert!(read_with(&bytes[..cut], &ReadOptions::default()).is_err(), "{cut}");
    }
    each_change(&bytes, 1, &[0, 1, b'r', b'(', b'{', b'0', 0xff], |changed, at| {
        assert!(read_with(changed, &ReadOptions::lenient()).is_ok(), "{at}");
    });
}
