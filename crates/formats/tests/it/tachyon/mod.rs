//! `tachyon`, compared with the results of CPython 3.15.2 for the same files.

mod allocations;
mod corrupt;
mod failing;
mod formats;
mod journal;
mod live;
mod messages;
mod modes;
mod musts;
mod page;
mod properties;
mod real;
mod recover;

use borehole_formats::Compression;
use std::fs;

use borehole_formats::tachyon::{
    FileHeader, FileTables, FrameSlot, PythonFrame, Reader, SampleOrder, Statistics, ThreadSlot, Writer,
    WriterOptions,
};
use borehole_formats::{Error, ReadOptions, Recovery};
use borehole_testkit::{corpus, corpus_files, read_corpus};
use serde_json::Value;

/// A frame in a form that both sides can be compared in: file, function, line, end line, column, end column, opcode.
pub(crate) type PlainFrame = (String, String, Option<[i64; 4]>, Option<u8>);

/// A sample in a form that both sides can be compared in.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PlainSample {
    pub(crate) thread: u64,
    pub(crate) interpreter: u32,
    pub(crate) time_us: u64,
    pub(crate) status: u8,
    pub(crate) frames_leaf_first: Vec<PlainFrame>,
}

/// The result of reading a file.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) samples: Vec<PlainSample>,
    pub(crate) error: Option<Error>,
    pub(crate) recovery: Recovery,
}

pub(crate) fn plain_frame(tables: &FileTables<'_>, index: u32) -> PlainFrame {
    let unknown = || (String::new(), format!("frame#{index}"), None, None);
    let Some(frame) = tables.frame(index) else { return unknown() };
    let text = |index| tables.string(index).map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    let (Some(file), Some(function)) = (text(frame.file), text(frame.function)) else { return unknown() };
    let place = [frame.line, frame.end_line, frame.column, frame.end_column].map(i64::from);
    (file, function, (frame.line != -1).then_some(place), frame.opcode)
}

pub(crate) fn read(bytes: &[u8], options: ReadOptions) -> Outcome {
    let mut samples = Vec::new();
    let mut reader = match Reader::with_options(bytes, options) {
        Ok(reader) => reader,
        Err(error) => return Outcome { samples, error: Some(error), recovery: Recovery::default() },
    };
    let mut stacks: Vec<Vec<u32>> = Vec::new();
    let error = loop {
        match reader.next_sample() {
            Ok(Some(sample)) => {
                if stacks.len() <= sample.thread_index {
                    stacks.resize(sample.thread_index + 1, Vec::new());
                }
                // The numbers in the message are the real ones.
                let before = &mut stacks[sample.thread_index];
                assert_eq!(before[..sample.kept], sample.frames_root_first[..sample.kept]);
                before.clear();
                before.extend_from_slice(sample.frames_root_first);
                let frames = sample.frames_root_first.iter().rev();
                samples.push(PlainSample {
                    thread: sample.thread,
                    interpreter: sample.interpreter,
                    time_us: sample.time_us,
                    status: sample.status,
                    frames_leaf_first: frames.map(|&frame| plain_frame(sample.tables, frame)).collect(),
                });
            }
            Ok(None) => break None,
            Err(error) => {
                assert!(matches!(reader.next_sample(), Ok(None)), "the reader continues after an error");
                break Some(error);
            }
        }
    };
    Outcome { samples, error, recovery: reader.into_recovery() }
}

pub(crate) fn read_well(bytes: &[u8]) -> Vec<PlainSample> {
    let outcome = read(bytes, ReadOptions::default());
    assert!(outcome.error.is_none() && outcome.recovery.is_clean(), "{outcome:?}");
    outcome.samples
}

/// The names of the real files, without folder and extension.
pub(crate) fn real_names() -> Vec<String> {
    let files = corpus_files("tachyon/corpus", ".bin");
    let names = files.iter().map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned());
    let names: Vec<_> = names.collect();
    assert_eq!(names.len(), 31);
    names
}

pub(crate) fn real(name: &str) -> Vec<u8> {
    read_corpus(&format!("tachyon/corpus/{name}.bin"))
}

pub(crate) fn expected(name: &str, ending: &str) -> Vec<u8> {
    read_corpus(&format!("tachyon/corpus/expected/{name}.{ending}"))
}

pub(crate) fn corrupt_file(name: &str) -> Vec<u8> {
    read_corpus(&format!("tachyon/corrupt/{name}"))
}

/// The samples of CPython's reader.
pub(crate) fn reference(name: &str) -> Vec<PlainSample> {
    let lines = zstd::stream::decode_all(&*expected(name, "dump.jsonl.zst")).unwrap();
    let lines = lines.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
    let values = lines.map(|line| serde_json::from_slice::<Value>(line).unwrap());
    values.filter(|line| line.get("tid").is_some()).map(|line| reference_sample(&line)).collect()
}

pub(crate) fn reference_sample(line: &Value) -> PlainSample {
    let frames = line["frames"].as_array().unwrap().iter();
    PlainSample {
        thread: line["tid"].as_u64().unwrap(),
        interpreter: line["iid"].as_u64().unwrap().try_into().unwrap(),
        time_us: line["ts"].as_u64().unwrap(),
        status: line["status"].as_u64().unwrap().try_into().unwrap(),
        frames_leaf_first: frames.map(reference_frame).collect(),
    }
}

fn reference_frame(frame: &Value) -> PlainFrame {
    let text = |index: usize| frame[index].as_str().unwrap().to_owned();
    let place = frame[2].as_i64().map(|_| [2, 3, 4, 5].map(|index: usize| frame[index].as_i64().unwrap()));
    let opcode = frame[6].as_u64().map(|opcode| opcode.try_into().unwrap());
    (text(0), text(1), place, opcode)
}

/// A spool in memory.
pub(crate) type Memory = std::io::Cursor<Vec<u8>>;

pub(crate) fn writer(options: WriterOptions) -> Writer<Memory> {
    Writer::new(Memory::default(), options).unwrap()
}

/// The options to write a file with this header again.
pub(crate) fn options_of(header: &FileHeader) -> WriterOptions {
    WriterOptions {
        byte_order: header.byte_order,
        layout: header.layout,
        compression: if header.compression == 1 { Compression::Zstd } else { Compression::None },
        python: header.python,
        start_us: header.start_us,
        interval_us: header.interval_us,
        config: header.config,
        order: SampleOrder::File,
    }
}

/// Reads `bytes` and writes their contents.
pub(crate) fn rewrite(bytes: &[u8], change: impl FnOnce(&mut WriterOptions)) -> Vec<u8> {
    let mut reader = Reader::new(bytes).unwrap();
    let mut options = options_of(reader.header());
    change(&mut options);
    let mut writer = writer(options);
    writer.set_statistics(reader.statistics().copied());
    let mut frames = Vec::new();
    while let Some(sample) = reader.next_sample().unwrap() {
        let thread = writer.thread(sample.thread, sample.interpreter).unwrap();
        frames.clear();
        for &index in sample.frames_root_first.iter().rev() {
            let frame = *sample.tables.frame(index).unwrap();
            let string = |index| sample.tables.string(index).unwrap();
            let def = PythonFrame {
                file: string(frame.file),
                function: string(frame.function),
                line: frame.line,
                end_line: frame.end_line,
                column: frame.column,
                end_column: frame.end_column,
                opcode: frame.opcode,
            };
            frames.push(writer.define_frame(&def).unwrap());
        }
        writer.write_sample(thread, sample.time_us, sample.status, &frames).unwrap();
    }
    let mut out = Vec::new();
    writer.finish(&mut out).unwrap();
    out
}

/// A file with decompressed samples, so that two of them can be compared byte for byte: the header without its offsets, the
/// samples, and the rest.
pub(crate) fn comparable(bytes: &[u8]) -> (FileHeader, Vec<u8>, Vec<u8>) {
    let mut header = *Reader::new(bytes).unwrap().header();
    let split = usize::try_from(header.strings_offset).unwrap();
    let region = &bytes[64..split];
    let samples =
        if header.compression == 1 { zstd::stream::decode_all(region).unwrap() } else { region.to_vec() };
    // The size of the file is before the checksum.
    let mut rest = bytes[split..].to_vec();
    let at = rest.len() - 24;
    rest[at..at + 8].fill(0);
    header.frames_offset -= header.strings_offset;
    header.strings_offset = 0;
    (header, samples, rest)
}

pub(crate) fn simple_frame<'a>(file: &'a str, function: &'a str, line: i32) -> PythonFrame<'a> {
    PythonFrame {
        file: file.as_bytes(),
        function: function.as_bytes(),
        line,
        end_line: line,
        column: 4,
        end_column: 9,
        opcode: None,
    }
}

pub(crate) fn define(writer: &mut Writer<Memory>, functions: &[&str]) -> Vec<FrameSlot> {
    functions.iter().map(|name| writer.define_frame(&simple_frame("/a.py", name, 1)).unwrap()).collect()
}

pub(crate) fn thread(writer: &mut Writer<Memory>, id: u64) -> ThreadSlot {
    writer.thread(id, 0).unwrap()
}

pub(crate) fn finish(writer: Writer<Memory>) -> Vec<u8> {
    let mut out = Vec::new();
    writer.finish(&mut out).unwrap();
    out
}

pub(crate) fn functions(sample: &PlainSample) -> Vec<&str> {
    sample.frames_leaf_first.iter().map(|frame| frame.1.as_str()).collect()
}

pub(crate) const fn statistics() -> Statistics {
    Statistics { duration_s: 1.5, sample_rate: 999.5, error_rate: Some(0.25), missed_samples: Some(-1.0) }
}

pub(crate) fn manifest() -> Vec<Value> {
    let text = fs::read(corpus("tachyon/corrupt/MANIFEST.json")).unwrap();
    serde_json::from_slice(&text).unwrap()
}
