//! `tachyon-jsonl` as CPython writes it, read.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io;
use std::ops::ControlFlow;

use borehole_formats::detect::{Format, detect};
use borehole_formats::{Limits, ReadError, ReadOptions, Recovery, tachyon, tachyon_jsonl};
use borehole_model::{Context, Frame, Mode, ProfileSink, Sample, Tables};
use borehole_testkit::{corpus_files, read_corpus};
use serde_json::Value;

/// The period of a segment, its mode, and its metadata.
type Facts = (Option<u64>, Mode, Vec<(String, String)>);

/// The number of samples of each leaf, and the facts of the segments.
#[derive(Debug, Default, PartialEq)]
struct Sums {
    by_leaf: BTreeMap<String, u64>,
    segments: Vec<Facts>,
    stop_after: Option<u64>,
    samples: u64,
}

fn text(tables: &Tables, string: borehole_model::StringId) -> String {
    String::from_utf8_lossy(tables.string(string)).into_owned()
}

/// A frame as CPython adds it up: line 0 if there is no position, and instructions are not distinguished.
fn frame_text(tables: &Tables, frame: &Frame) -> String {
    let Frame { line, end_line, column, end_column, .. } = *frame;
    let file = frame.file.map_or_else(String::new, |file| text(tables, file));
    let mut shown = format!("{file}:{} {}", line.unwrap_or(0), text(tables, frame.function));
    write!(shown, " {:?} {column:?} {end_column:?}", end_line.filter(|&line| line > 0)).unwrap();
    shown
}

impl ProfileSink for Sums {
    fn sample(&mut self, at: Context<'_>, sample: &Sample<'_>) -> io::Result<ControlFlow<()>> {
        let mut stacks = std::iter::successors(sample.stack, |&stack| at.tables.parent(stack));
        let is_own = |frame: &Frame| {
            frame.file.is_some_and(|file| text(at.tables, file).ends_with("_sync_coordinator.py"))
        };
        let leaf = stacks
            .find_map(|stack| Some(at.tables.frame(at.tables.leaf(stack))).filter(|frame| !is_own(frame)));
        if let Some(leaf) = leaf {
            *self.by_leaf.entry(frame_text(at.tables, &leaf)).or_default() += sample.count;
        }
        self.samples += sample.count;
        let stops = self.stop_after.is_some_and(|most| self.samples >= most);
        Ok(if stops { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }

    fn segment(&mut self, at: Context<'_>) -> io::Result<()> {
        let pairs = at.segment.metadata.iter();
        let pairs = pairs.map(|&(key, value)| (text(at.tables, key), text(at.tables, value)));
        self.segments.push((at.segment.period_ns, at.segment.mode, pairs.collect()));
        Ok(())
    }
}

fn read(bytes: &[u8], options: ReadOptions) -> (Sums, Result<Recovery, ReadError>) {
    let mut sums = Sums::default();
    let outcome = tachyon_jsonl::import(bytes, &options, &mut Tables::default(), &mut sums);
    (sums, outcome)
}

fn strict_error(bytes: &[u8]) -> String {
    match read(bytes, ReadOptions::default()).1 {
        Err(ReadError::Input(error)) => error.to_string(),
        other => panic!("{other:?}"),
    }
}

const META: &str = r#"{"type":"meta","v":0,"run_id":"a","sample_interval_usec":250,"mode":"cpu","x":7}"#;
const STRINGS: &str =
    r#"{"type":"string_table","strings":[{"str_id":0,"value":"f"},{"str_id":5,"value":"a.py"}]}"#;
const FRAMES: &str = r#"{"type":"frame_table","frames":[{"frame_id":3,"path_str_id":5,"func_str_id":0,"line":2,"end_line":4,"col":1,"end_col":9,"opcode":"CALL"}]}"#;
const SUMS: &str =
    r#"{"type":"agg","kind":"frame","scope":"final","entries":[{"frame_id":3,"self":4,"cumulative":6}]}"#;
const END: &str = r#"{"type":"end","samples_total":4}"#;

fn document(lines: &[&str]) -> Vec<u8> {
    lines.iter().flat_map(|line| [line.as_bytes(), b"\n"].concat()).collect()
}

#[test]
fn files_of_cpython_have_the_sums_of_the_profile() {
    let files = corpus_files("tachyon/corpus/expected", ".jsonl");
    let files: Vec<_> = files.iter().filter(|path| !path.to_string_lossy().contains(".dump.")).collect();
    assert!(files.len() > 20, "{}", files.len());
    for path in files {
        let name = path.file_stem().unwrap().to_str().unwrap();
        let bytes = std::fs::read(path).unwrap();
        let (found, outcome) = read(&bytes, ReadOptions::default());
        assert!(outcome.unwrap().is_clean(), "{name}");
        assert_eq!(detect(&bytes), Some(Format::TachyonJsonl), "{name}");
        let mut wanted = Sums::default();
        let profile = read_corpus(&format!("tachyon/corpus/{name}.bin"));
        tachyon::import(&profile, &ReadOptions::default(), &mut Tables::default(), &mut wanted).unwrap();
        assert_eq!(found.by_leaf, wanted.by_leaf, "{name}");
        let facts = |sums: &Sums| (sums.segments[0].0, sums.segments[0].1);
        assert_eq!(facts(&found), facts(&wanted), "{name}");
        let mode = |sums: &Sums| sums.segments[0].2.iter().find(|pair| pair.0 == "mode").cloned();
        assert_eq!(mode(&found), mode(&wanted), "{name}");
    }
}

#[test]
fn a_recorded_file_has_its_stated_number_of_samples() {
    let bytes = read_corpus("tachyon/made/web.tachyon.jsonl");
    let last = bytes.trim_ascii_end().rsplit(|&byte| byte == b'\n').next().unwrap();
    let total = serde_json::from_slice::<Value>(last).unwrap()["samples_total"].as_u64().unwrap();
    let (sums, outcome) = read(&bytes, ReadOptions::default());
    let recovery = outcome.unwrap();
    assert!(total > 0 && recovery.is_clean());
    assert_eq!((sums.samples, recovery.samples, recovery.segments), (total, total, 1));
    assert!(recovery.notes[0].message.ends_with("sums of frames have no stacks"), "{:?}", recovery.notes);
}

#[test]
fn positions_instructions_and_metadata_are_kept() {
    let (sums, outcome) =
        read(&document(&[META, STRINGS, FRAMES, SUMS, END, META, END]), ReadOptions::default());
    let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    let pairs = vec![pair("mode", "cpu"), pair("run_id", "a"), pair("x", "7")];
    assert_eq!(sums.segments[0], (Some(250_000), Mode::Cpu, pairs));
    assert_eq!(sums.by_leaf, [("a.py:2 f Some(4) Some(1) Some(9)".to_owned(), 4)].into());
    // The second run has no samples, but its last line claims some.
    assert!(outcome.is_err());
}

#[test]
fn strict_reading_ends_at_a_wrong_line_and_lenient_reading_reports_it() {
    let unknown = r#"{"type":"agg","kind":"frame","scope":"final","entries":[{"frame_id":8,"self":1}]}"#;
    let stacks = r#"{"type":"agg","kind":"stack","scope":"final","entries":[]}"#;
    for (lines, line, said) in [
        (vec![META, STRINGS, "{", SUMS, END], 3, "invalid line: EOF while parsing an object"),
        (vec![META, STRINGS, FRAMES, unknown, END], 4, "undefined frame: 8"),
        (vec![META, FRAMES, SUMS, END], 2, "undefined string: 5"),
        (vec![STRINGS, FRAMES, SUMS, END], 1, "expected a first line of type `meta`"),
        (vec![META, stacks, END], 2, "expected final sums of frames, found final sums of stack"),
        (vec![META, r#"{"type":"later"}"#], 2, "unknown line type: `later`"),
        (vec![META, STRINGS, FRAMES, SUMS, SUMS, END], 6, "expected 4 samples, found 8"),
        (vec![r#"{"type":"meta","v":1}"#], 1, "unsupported version: expected 0, found 1"),
    ] {
        let bytes = document(&lines);
        let error = strict_error(&bytes);
        assert!(error.contains(said) && error.contains(&format!("at line {line})")), "{error}");
        let (sums, outcome) = read(&bytes, ReadOptions::lenient());
        let recovery = outcome.unwrap();
        let is_said = |warning: &borehole_formats::Warning| warning.message.contains(said);
        assert!(recovery.warnings.iter().any(is_said), "{said}: {:?}", recovery.warnings);
        assert_eq!(recovery.samples, sums.samples);
    }
}

#[test]
fn a_document_that_is_cut_off_ends_there_with_a_warning() {
    let whole = document(&[META, STRINGS, FRAMES, SUMS, END]);
    for cut in META.len() + 1..whole.len() - 1 {
        let (sums, outcome) = read(&whole[..cut], ReadOptions::default());
        let recovery = outcome.unwrap();
        assert!(!recovery.is_clean(), "{cut}");
        let is_there = cut >= whole.len() - END.len() - 2;
        assert_eq!(sums.samples, if is_there { 4 } else { 0 }, "{cut}");
    }
}

#[test]
fn definitions_have_a_limit_and_a_sink_ends_the_reading() {
    let bytes = read_corpus("tachyon/made/web.tachyon.jsonl");
    let limits = Limits { memory_bytes: 500, ..Limits::default() };
    let (_, outcome) = read(&bytes, ReadOptions { limits, ..ReadOptions::lenient() });
    assert!(matches!(outcome, Err(ReadError::Input(error)) if error.is_limit()));
    let mut sums = Sums { stop_after: Some(1), ..Sums::default() };
    let recovery =
        tachyon_jsonl::import(&bytes[..], &ReadOptions::default(), &mut Tables::default(), &mut sums)
            .unwrap();
    assert!(recovery.stopped && recovery.is_clean());
    assert_eq!(recovery.samples, sums.samples);
}
