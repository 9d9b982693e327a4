//! Statistics of cProfile, compared with what Python's own `pstats` says of them.

use std::collections::BTreeMap;

use borehole_formats::{Error, Format, ReadOptions, detect, pstats};
use borehole_model::Recovery;
use borehole_testkit::read_corpus;
use serde_json::Value;

use crate::damage::each_change;
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

#[test]
fn other_objects_are_refused() {
    for (bytes, message) in [
        (&b"i\x01\0\0\0"[..], "expected a dictionary of functions, found another object"),
        (
            b"{)\x03z\x01ai\x01\0\0\0z\x01fN0",
            "expected calls, times and callers of a function, found another object",
        ),
        (b"{)\x01Ni\x01\0\0\x000", "expected calls, times and callers of a function, found another object"),
        (b"{c", "expected an object of statistics, found the type 0x63"),
        (b"{)\x03", "truncated: 1 bytes missing"),
    ] {
        let error = read_with(bytes, &ReadOptions::default()).err().unwrap();
        assert_eq!(error.message(), message);
        let (collect, recovery) = read_with(bytes, &ReadOptions::lenient()).unwrap();
        assert!(collect.count() == 0 && !recovery.is_clean());
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
