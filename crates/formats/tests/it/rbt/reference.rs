//! `rbt`, compared with reli's results for the same files.

use std::collections::HashMap;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use borehole_formats::rbt::{
    DefinedFrame, Definitions, FrameDef, FunctionName, Header, Reader, Record, SampleDef, StoredSample,
    Writer,
};
use borehole_formats::{Error, ReadOptions};
use serde_json::Value;

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/rbt")
}

fn manifest() -> Vec<Value> {
    let text = fs::read(corpus().join("MANIFEST.json")).unwrap();
    let manifest: Value = serde_json::from_slice(&text).unwrap();
    manifest["files"].as_array().unwrap().clone()
}

fn text(value: &Value) -> Vec<u8> {
    match value {
        Value::String(text) => text.clone().into_bytes(),
        Value::Object(object) => {
            let hex = object["hex"].as_str().unwrap();
            (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
        }
        other => panic!("not a string: {other}"),
    }
}

/// A frame in a form that both sides can be compared in.
type FrameKey = (Vec<u8>, Vec<u8>, i64, Option<Vec<u8>>);

/// The stacks of both sides under common numbers.
#[derive(Default)]
struct Stacks(HashMap<Vec<FrameKey>, usize>);

impl Stacks {
    fn number(&mut self, frames: Vec<FrameKey>) -> usize {
        let next = self.0.len();
        *self.0.entry(frames).or_insert(next)
    }
}

/// A run of equal samples.
#[derive(Clone, Debug, PartialEq)]
struct Run {
    sample: Observation,
    count: u64,
}

#[derive(Clone, Debug, PartialEq)]
struct Observation {
    stack: usize,
    delta_us: Option<i64>,
    accumulated_us: Option<i64>,
    pid: Option<i64>,
    annotations: Vec<(Vec<u8>, Vec<u8>)>,
}

fn push(runs: &mut Vec<Run>, sample: Observation, count: u64) {
    match runs.last_mut() {
        _ if count == 0 => {}
        Some(last) if last.sample == sample => last.count += count,
        _ => runs.push(Run { sample, count }),
    }
}

fn reference_frame(frame: &Value) -> FrameKey {
    if frame["native"] == true {
        return (text(&frame["fn"]), text(&frame["module"]), frame["off"].as_i64().unwrap(), None);
    }
    let opcode = frame.get("op").filter(|op| !op.is_null()).map(text);
    (text(&frame["fn"]), text(&frame["file"]), frame["line"].as_i64().unwrap(), opcode)
}

fn reference(path: &Path, numbers: &mut Stacks) -> Vec<Run> {
    let mut bytes = Vec::new();
    let file = fs::File::open(path).unwrap();
    borehole_wire::envelope::Envelope::new(file).read_to_end(&mut bytes).unwrap();
    let mut stacks = Vec::new();
    let mut runs = Vec::new();
    for line in bytes.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()) {
        let line: Value = serde_json::from_slice(line).unwrap();
        if let Some(frames) = line.get("frames") {
            stacks.push(numbers.number(frames.as_array().unwrap().iter().map(reference_frame).collect()));
        } else if let Some(stack) = line.get("s") {
            let pairs = line["ann"].as_array().cloned().unwrap_or_default();
            let sample = Observation {
                stack: stacks[usize::try_from(stack.as_u64().unwrap()).unwrap()],
                delta_us: line["d"].as_i64(),
                accumulated_us: line["t"].as_i64(),
                pid: line["pid"].as_i64(),
                annotations: pairs.iter().map(|pair| (text(&pair[0]), text(&pair[1]))).collect(),
            };
            push(&mut runs, sample, line["n"].as_u64().unwrap_or(1));
        }
    }
    runs
}

fn frame_key(frame: &DefinedFrame, definitions: &Definitions) -> FrameKey {
    let string = |string| definitions.string(string).to_vec();
    match *frame {
        DefinedFrame::Native { symbol, module, offset } => (string(symbol), string(module), offset, None),
        DefinedFrame::Php { namespace, class, method, file, line, opcode } => {
            let [namespace, class, method] = [namespace, class, method].map(|part| definitions.string(part));
            let name = FunctionName { namespace, class, method }.join();
            (name, string(file), line, opcode.map(string))
        }
    }
}

fn observation(sample: &StoredSample<'_>, stack: usize) -> Observation {
    let pairs = sample.annotations.unwrap_or_default();
    let string = |string| sample.definitions.string(string).to_vec();
    Observation {
        stack,
        delta_us: sample.delta_us,
        accumulated_us: sample.accumulated_us,
        pid: sample.pid,
        annotations: pairs.iter().map(|&(key, value)| (string(key), string(value))).collect(),
    }
}

/// All runs, the error at the end, and the recovery.
type Outcome = (Vec<Run>, Option<Error>, borehole_model::Recovery);

fn read(bytes: &[u8], options: ReadOptions, numbers: &mut Stacks) -> Outcome {
    let mut reader = Reader::with_options(bytes, options);
    let mut runs = Vec::new();
    let mut known = HashMap::new();
    let error = loop {
        match reader.next_record() {
            Ok(Some(Record::Sample(sample))) => {
                let definitions = sample.definitions;
                let stack = *known.entry(sample.stack).or_insert_with(|| {
                    let frames = definitions.frames_leaf_first(sample.stack);
                    numbers.number(
                        frames.map(|frame| frame_key(definitions.frame(frame), definitions)).collect(),
                    )
                });
                push(&mut runs, observation(&sample, stack), sample.count);
            }
            Ok(Some(Record::Segment(_))) => known.clear(),
            Ok(Some(Record::Metadata { .. })) => {}
            Ok(None) => break None,
            Err(error) => {
                assert!(matches!(reader.next_record(), Ok(None)), "the reader continues after an error");
                break Some(error);
            }
        }
    };
    (runs, error, reader.into_recovery())
}

/// Files of which reli reads less than they contain: it ignores a raw segment after a gzip member, and crashes on a repeat
/// of 2^40.
const BEYOND_RELI: [&str; 2] = ["gzip_then_raw.rbt.gz", "repeat_huge.rbt"];

#[test]
fn every_file_reads_as_reli_reads_it() {
    let mut compared = 0;
    for file in manifest() {
        let name = file["name"].as_str().unwrap();
        let Some(expected) = file["strict"]["expected"].as_str() else { continue };
        let mut numbers = Stacks::default();
        let want = reference(&corpus().join(expected), &mut numbers);
        let bytes = fs::read(corpus().join(name)).unwrap();
        let (got, error, _) = read(&bytes, ReadOptions::default(), &mut numbers);
        if BEYOND_RELI.contains(&name) {
            assert!(error.is_none() && count(&got) > count(&want), "{name}");
        } else if file["strict"]["error"].is_null() {
            assert!(error.is_none(), "{name}: {error:?}");
            assert!(got == want, "{name}: {} runs, wanted {}", got.len(), want.len());
            compared += 1;
        } else {
            // Reli loses the sample before an error. Borehole passes on everything before it.
            let before = want.len().saturating_sub(1);
            assert!(got.len() >= want.len() && got[..before] == want[..before], "{name}");
        }
    }
    assert!(compared >= 60, "only {compared} files compared");
}

fn count(runs: &[Run]) -> u64 {
    runs.iter().map(|run| run.count).sum()
}

#[test]
fn recovery_saves_at_least_what_reli_saves() {
    for file in manifest() {
        let name = file["name"].as_str().unwrap();
        let want = file["recover"]["samples"].as_u64().unwrap_or(0);
        let bytes = fs::read(corpus().join(name)).unwrap();
        let (got, error, recovery) = read(&bytes, ReadOptions::lenient(), &mut Stacks::default());
        assert!(error.is_none(), "{name}: {error:?}");
        assert!(count(&got) >= want, "{name}: {} samples, reli {want}; {recovery:?}", count(&got));
    }
}

/// Writes the contents of `bytes` again, sample by sample.
fn rewrite(bytes: &[u8], checkpoint_interval: Option<u64>) -> Vec<u8> {
    let mut reader = Reader::new(bytes);
    let mut out: Option<Writer<Vec<u8>>> = None;
    while let Some(record) = reader.next_record().unwrap() {
        match record {
            Record::Segment(start) => match &mut out {
                Some(writer) => writer.start_segment(start.header).unwrap(),
                None => {
                    let writer = Writer::new(Vec::new(), start.header).unwrap();
                    out = Some(match checkpoint_interval {
                        Some(interval) => writer.checkpoint_every(interval),
                        None => writer,
                    });
                }
            },
            Record::Metadata { key, value } => out.as_mut().unwrap().write_metadata(key, value).unwrap(),
            Record::Sample(sample) => rewrite_sample(out.as_mut().unwrap(), &sample),
        }
    }
    out.map_or_else(Vec::new, |writer| writer.finish().unwrap())
}

fn rewrite_sample(writer: &mut Writer<Vec<u8>>, sample: &StoredSample<'_>) {
    let definitions = sample.definitions;
    let string = |string| definitions.string(string);
    let frames: Vec<FrameDef<'_>> = definitions
        .frames_leaf_first(sample.stack)
        .map(|frame| match *definitions.frame(frame) {
            DefinedFrame::Native { symbol, module, offset } => {
                FrameDef::Native { symbol: string(symbol), module: string(module), offset }
            }
            DefinedFrame::Php { namespace, class, method, file, line, opcode } => FrameDef::Php {
                name: FunctionName {
                    namespace: string(namespace),
                    class: string(class),
                    method: string(method),
                },
                file: string(file),
                line,
                opcode: opcode.map(string),
            },
        })
        .collect();
    let pairs: Option<Vec<_>> = sample
        .annotations
        .map(|pairs| pairs.iter().map(|&(key, value)| (string(key), string(value))).collect());
    for _ in 0..sample.count {
        let stack = writer.define_trace(&frames).unwrap();
        let sample = SampleDef {
            stack,
            count: 1,
            delta_us: sample.delta_us,
            pid: sample.pid,
            annotations: pairs.as_deref(),
        };
        writer.write_sample(&sample).unwrap();
    }
}

/// Files of the corpus that are not determined by their samples alone, and why.
const NOT_REPRODUCIBLE: [(&str, &str); 8] = [
    ("annotations.rbt", "an empty list of annotations split a run and left no other trace"),
    ("concat_no_end.rbt", "the writer was never finished"),
    ("tiny_one_notail.rbt", "the writer was never finished"),
    ("gzip_header_only.rbt.gz", "the writer was never finished"),
    ("repeat_5m.rbt", "made by hand"),
    ("unknown_events.rbt", "made by hand"),
    ("multi_segment.rbt", "reli's segmented writer repeats every stack seen so far"),
    ("gzip_members.rbt.gz", "reli's segmented writer repeats every stack seen so far"),
];

#[test]
fn writer_made_files_come_out_byte_for_byte() {
    let mut same = 0;
    let mut differ = Vec::new();
    for file in manifest() {
        let name = file["name"].as_str().unwrap();
        let tags: Vec<&str> = file["tags"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
        if !tags.contains(&"valid")
            || tags.contains(&"edge")
            || NOT_REPRODUCIBLE.iter().any(|(other, _)| *other == name)
        {
            continue;
        }
        let mut bytes = Vec::new();
        let raw = fs::File::open(corpus().join(name)).unwrap();
        borehole_wire::envelope::Envelope::new(raw).read_to_end(&mut bytes).unwrap();
        // The interval of checkpoints is not in the file: there are none, those of a live capture, or those of one file of
        // the corpus.
        if [None, Some(1000), Some(50_000)].into_iter().any(|interval| rewrite(&bytes, interval) == bytes) {
            same += 1;
        } else {
            differ.push(name.to_owned());
        }
    }
    assert!(differ.is_empty(), "{differ:?}");
    assert!(same >= 20, "only {same} files compared");
}

#[test]
fn function_names_split_as_reli_splits_them() {
    let names = fs::read(corpus().join("function_names.json")).unwrap();
    let names: Vec<Value> = serde_json::from_slice(&names).unwrap();
    for case in &names {
        let input = text(&case["in"]);
        let name = FunctionName::split(&input);
        let want = [text(&case["ns"]), text(&case["class"]), text(&case["method"])];
        assert_eq!([name.namespace, name.class, name.method], [&want[0][..], &want[1], &want[2]], "{case}");
        assert_eq!(name.join(), text(&case["read_back"]), "{case}");
    }
    assert!(names.len() > 20);
}

#[test]
fn a_header_is_sixteen_bytes() {
    let header = Header { has_timestamps: true, period_us: 10_000 };
    assert_eq!(&header.encode(), b"RELI\x01\x01\0\0\x10\x27\0\0\0\0\0\0");
}
