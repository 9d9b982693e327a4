//! MOJO: recordings of Austin, compared with what austin-python reads out of them, and streams of a few events.

use std::collections::BTreeMap;

use borehole_formats::{Error, Limits, ReadOptions, folded, mojo};
use borehole_model::Recovery;
use borehole_testkit::read_corpus;
use serde_json::Value;

use crate::play::{Collect, PlainFrame, PlainLabel, PlainSample, collected};

/// The recordings of the corpus.
const RECORDINGS: [&str; 6] = ["wall", "cpu", "memory", "full", "full-3", "tasks"];

fn read_with(bytes: &[u8], options: &ReadOptions) -> Result<(Collect, Recovery), Error> {
    collected(|tables, sink| mojo::import(bytes, options, tables, sink))
}

fn read(bytes: &[u8]) -> Collect {
    let (collect, recovery) = read_with(bytes, &ReadOptions::default()).unwrap();
    assert!(recovery.is_clean(), "{:?}", recovery.warnings);
    collect
}

fn recording(name: &str) -> Vec<u8> {
    read_corpus(&format!("austin/{name}.mojo")).to_vec()
}

type Sums = BTreeMap<String, i64>;

/// The values of each thread, and those of each leaf and function, as `corpus/austin/says.py` has them.
#[derive(Debug, Default, PartialEq)]
struct Said {
    samples: usize,
    collecting: usize,
    threads: Sums,
    leaves: Sums,
    functions: Sums,
}

impl Said {
    fn of_ours(profile: &Collect, is_frame: impl Fn(&PlainFrame) -> bool) -> Self {
        let mut said = Self::default();
        for sample in profile.samples() {
            said.samples += 1;
            let PlainSample { process, interpreter, thread, .. } = sample;
            let thread = format!("{} {} {}", process.unwrap(), interpreter.unwrap(), thread.unwrap());
            let leaf = sample.frames_leaf_first.first().map(|frame| frame.function.as_str());
            said.collecting += usize::from(leaf == Some("GC"));
            let frames: Vec<_> = sample.frames_leaf_first.iter().filter(|frame| is_frame(frame)).collect();
            let mut functions: Vec<_> = frames.iter().map(|frame| name(frame)).collect();
            functions.sort();
            functions.dedup();
            for (column, value) in sample.values.iter().enumerate() {
                *said.threads.entry(format!("{thread} {column}")).or_default() += value;
                if let Some(leaf) = frames.first() {
                    let place = leaf.column.map_or(-1, i64::from);
                    let line = leaf.line.unwrap_or(0);
                    *said.leaves.entry(format!("{} {line} {place} {column}", name(leaf))).or_default() +=
                        value;
                }
                for function in &functions {
                    *said.functions.entry(format!("{function} {column}")).or_default() += value;
                }
            }
        }
        said
    }

    fn of_theirs(file: &str) -> Self {
        let said: Value = serde_json::from_slice(&read_corpus(&format!("austin/{file}.json"))).unwrap();
        let count = |key: &str| usize::try_from(said[key].as_u64().unwrap()).unwrap();
        let sums = |key: &str| {
            let sums = said[key].as_object().unwrap().iter();
            sums.map(|(name, sum)| (name.clone(), sum.as_i64().unwrap())).collect()
        };
        Self {
            samples: count("samples"),
            collecting: count("collecting"),
            threads: sums("threads"),
            leaves: sums("leaves"),
            functions: sums("functions"),
        }
    }
}

fn name(frame: &PlainFrame) -> String {
    format!("{} {}", frame.file.as_deref().unwrap_or(""), frame.function)
}

#[test]
fn sums_are_those_of_austin_python() {
    for file in RECORDINGS {
        let profile = read(&recording(file));
        let theirs = Said::of_theirs(&format!("{file}.mojo"));
        assert!(theirs.samples > 2 && !theirs.functions.is_empty(), "{file}");
        // Its reader of streams marks a sample while garbage is collected, and adds no frame.
        assert_eq!(Said::of_ours(&profile, |frame| frame.file.is_some()), theirs, "{file}");
    }
    let text = read_corpus("austin/gc.austin");
    let (profile, _) =
        collected(|tables, sink| folded::import(&text[..], &ReadOptions::default(), tables, sink)).unwrap();
    let theirs = Said::of_theirs("gc.austin");
    assert!(theirs.collecting > 10);
    assert_eq!(Said::of_ours(&profile, |_| true), theirs);
}

#[test]
fn the_mode_says_what_is_measured() {
    let wall = ("wall", "microseconds");
    for (file, types) in [
        ("wall", vec![wall]),
        ("cpu", vec![("cpu", "microseconds")]),
        ("memory", vec![("memory", "bytes")]),
        ("full", vec![wall, ("cpu", "microseconds"), ("memory", "bytes")]),
    ] {
        let segment = &read(&recording(file)).segments[0];
        let found: Vec<_> = segment.value_types.iter().map(|(kind, unit)| (&**kind, &**unit)).collect();
        assert_eq!((found, segment.is_uncounted), (types, true), "{file}");
        let theirs: Value =
            serde_json::from_slice(&read_corpus(&format!("austin/{file}.mojo.json"))).unwrap();
        for known in ["austin", "interval", "mode"] {
            let found = segment.metadata.iter().find(|(key, _)| key == known);
            assert_eq!(theirs["metadata"][known], *found.unwrap().1, "{file}");
        }
    }
}

#[test]
fn samples_of_tasks_are_labelled_and_the_frames_of_tasks_are_not_theirs() {
    let (profile, recovery) = read_with(&recording("tasks"), &ReadOptions::default()).unwrap();
    let seen: Vec<_> = profile.samples().map(|sample| (sample.labels.clone(), leaf(sample))).collect();
    let task = |name: &str| vec![PlainLabel::Text("task".to_owned(), name.to_owned())];
    let expected = [(task("Task-1"), "fetch"), (task("parser"), "parse"), (vec![], "run_forever")];
    assert_eq!(seen, expected.map(|(labels, leaf)| (labels, leaf.to_owned())));
    let notes: Vec<_> = recovery.notes.iter().map(|note| note.message.clone()).collect();
    assert_eq!(notes, ["2 positions of suspended tasks are not read"]);
}

fn leaf(sample: &PlainSample) -> String {
    sample.frames_leaf_first[0].function.clone()
}

/// A stream with two frames, `main` of a file and `native` of a library.
const HEAD: &[u8] =
    b"MOJ\x03\x01mode\0wall\0\x02\x07\0\x3231\0\x0b\x02a.py\0\x0b\x03main\0\x0b\x04lib.so\0\x0b\x05native\0\
    \x03\x01\x02\x03\x05\x06\x05\x09\x03\x02\x04\x05\0\0\0\0\x05\x01\x05\x02\x06do_idle\0\x09\x0a";

fn with(events: &[u8]) -> Vec<u8> {
    [HEAD, events].concat()
}

#[test]
fn repeated_stacks_are_those_of_the_thread_up_to_its_python_frames() {
    let profile =
        read(&with(b"\x02\x07\0\x3231\0\x05\x01\x0d\x09\x05\x02\x07\0\x3232\0\x0d\x04\x07\x09\x01"));
    let stacks: Vec<Vec<_>> = profile
        .samples()
        .map(|sample| sample.frames_leaf_first.iter().rev().map(|frame| frame.function.as_str()).collect())
        .collect();
    assert_eq!(stacks, [vec!["main", "native", "do_idle"], vec!["main", "main"], vec!["INVALID", "GC"]]);
    let frame = &profile.segments[0].samples[0].frames_leaf_first[2];
    assert_eq!((frame.line, frame.column), (Some(5), Some(4)));
    let kernel = &profile.segments[0].samples[0].frames_leaf_first[0];
    assert_eq!(kernel.native, Some(("[kernel]".to_owned(), None)));
}

#[test]
fn stacks_that_are_repeated_twice_do_not_double() {
    let samples = b"\x02\x07\0\x3231\0\x05\x01\x0d\x0d\x09\x05".repeat(16);
    let profile = read(&with(&samples));
    assert_eq!(profile.samples().last().unwrap().frames_leaf_first.len(), 17);
}

#[test]
fn what_is_undefined_is_an_error_or_lost() {
    for (events, expected) in [
        (&b"\x02\x07\0\x3231\0\x05\x09\x09\x01"[..], "undefined frame: 9 (mojo, at byte 0x5c)"),
        (b"\x03\x07\x09\x03\x01\x01\x01\x01", "undefined string: 9 (mojo, at byte 0x55)"),
        (b"\x02\x08\0\x3231\0\x05\x01\x09\x01", "undefined frame: 1 (mojo, at byte 0x5c)"),
        (b"\x1f", "unknown event: expected 1 to 16, found 31 (mojo, at byte 0x55)"),
    ] {
        let error = read_with(&with(events), &ReadOptions::default()).unwrap_err();
        assert_eq!(error.to_string(), expected);
        let (profile, recovery) = read_with(&with(events), &ReadOptions::lenient()).unwrap();
        assert!(!recovery.is_clean(), "{expected}");
        assert!(profile.samples().all(|sample| !sample.frames_leaf_first.is_empty()), "{expected}");
    }
    for (bytes, expected) in [
        (&b"MOJ\x05"[..], "unsupported version: expected 1 to 4, found 5 (mojo, at byte 0x3)"),
        (b"MOJ\x03\x05\x01", "expected a stack before other events (mojo, at byte 0x4)"),
        (b"MOJ", "truncated: no version (mojo, at byte 0x3)"),
    ] {
        assert_eq!(read_with(bytes, &ReadOptions::default()).unwrap_err().to_string(), expected);
    }
}

#[test]
fn memory_for_definitions_and_threads_is_limited() {
    let limits = Limits { memory_bytes: 100_000, ..Limits::default() };
    let strings: Vec<u8> = (0..3000_u32)
        .flat_map(|key| {
            [&[0x0b, 0xbf, 0x80 | (key & 0x7f).to_le_bytes()[0]][..], &[(key >> 7).to_le_bytes()[0], b'a', 0]]
                .concat()
        })
        .collect();
    let threads: Vec<u8> = (0..3000)
        .flat_map(|thread| [&b"\x02\x07\0"[..], format!("{thread:x}\0\x09\x01").as_bytes()].concat())
        .collect();
    for events in [strings, threads] {
        let error = read_with(&with(&events), &ReadOptions { limits, ..ReadOptions::lenient() }).unwrap_err();
        assert!(error.is_memory(), "{error}");
    }
}

#[test]
fn every_prefix_keeps_the_samples_before_the_cut() {
    for bytes in [with(b"\x02\x07\0\x3231\0\x05\x01\x09\x05"), recording("memory")] {
        let whole: Vec<_> = read(&bytes).samples().cloned().collect();
        for cut in 4..bytes.len() {
            let (profile, _) = read_with(&bytes[..cut], &ReadOptions::default()).unwrap();
            let kept: Vec<_> = profile.samples().cloned().collect();
            assert_eq!(kept, whole[..kept.len()], "{cut}");
        }
        let (profile, recovery) = read_with(&bytes[..bytes.len() - 1], &ReadOptions::default()).unwrap();
        assert!(!recovery.is_clean() && profile.samples().count() + 1 >= whole.len());
    }
}

#[test]
fn every_changed_byte_is_survived() {
    for bytes in [with(b"\x02\x07\0\x3231\0\x05\x01\x0d\x09\x05"), recording("tasks")] {
        for at in 0..bytes.len() {
            for change in [0, 1, 5, 13, 14, 0x40, 0x80, 0xff] {
                let mut changed = bytes.clone();
                changed[at] = change;
                let _ = read_with(&changed, &ReadOptions::default());
                let lenient = read_with(&changed, &ReadOptions::lenient());
                assert!(lenient.is_ok() || at < 4, "{at} {change}");
            }
        }
    }
}
