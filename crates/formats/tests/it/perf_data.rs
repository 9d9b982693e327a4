//! perf.data: real recordings, compared with what perf script and perf report say of them, and files of a few records.

use std::collections::BTreeMap;

use borehole_formats::{Error, ReadOptions, perf_data, perf_script};
use borehole_model::Recovery;
use borehole_testkit::read_corpus;

use crate::damage::each_change;
use crate::play::{Collect, PlainSample, collected};

/// The recordings of the corpus.
const RECORDINGS: [&str; 3] = ["threads", "stream", "flat"];

fn read_with(bytes: &[u8], options: &ReadOptions) -> Result<(Collect, Recovery), Error> {
    collected(|tables, sink| perf_data::import(bytes, options, tables, sink))
}

fn read(bytes: &[u8]) -> Collect {
    let (collect, recovery) = read_with(bytes, &ReadOptions::default()).unwrap();
    assert!(recovery.is_clean(), "{:?}", recovery.warnings);
    collect
}

/// The part of each sample that perf script prints, too, and its values by their names.
fn said(profile: &Collect) -> Vec<(PlainSample, Vec<(String, i64)>)> {
    let rows = profile.segments.iter().flat_map(|segment| {
        segment.samples.iter().map(|sample| {
            let kinds = segment.value_types.iter().map(|(kind, _)| kind.clone());
            let values = kinds.zip(sample.values.iter().copied()).filter(|(_, value)| *value != 0);
            (without_names(sample), values.collect())
        })
    });
    rows.collect()
}

fn without_names(sample: &PlainSample) -> PlainSample {
    let mut sample = PlainSample { values: Vec::new(), ..sample.clone() };
    for frame in &mut sample.frames_leaf_first {
        frame.function.clear();
        frame.native.iter_mut().for_each(|(_, offset)| *offset = None);
    }
    sample
}

#[test]
fn samples_are_those_of_perf_script() {
    for name in RECORDINGS {
        let ours = read(&read_corpus(&format!("perf/{name}.data")));
        let text = read_corpus(&format!("perf/{name}.data.txt"));
        let (theirs, _) =
            collected(|tables, sink| perf_script::import(&text[..], &ReadOptions::default(), tables, sink))
                .unwrap();
        let [ours_said, theirs_said] = [&ours, &theirs].map(said);
        assert!(ours_said.len() > 50, "{name}");
        for (ours, theirs) in ours_said.iter().zip(&theirs_said) {
            assert_eq!(ours, theirs, "{name}");
        }
        assert_eq!(ours_said.len(), theirs_said.len(), "{name}");
        assert_eq!(ours.thread_names, theirs.thread_names, "{name}");
        let units = |profile: &Collect| {
            let mut types = profile.segments.last().unwrap().value_types.clone();
            types.sort();
            types
        };
        assert_eq!(units(&ours), units(&theirs), "{name}");
    }
}

#[test]
fn sums_are_those_of_perf_report() {
    for name in RECORDINGS {
        let report =
            String::from_utf8(read_corpus(&format!("perf/{name}.data.report.txt")).to_vec()).unwrap();
        let (mut theirs, mut event) = (BTreeMap::new(), String::new());
        for line in report.lines() {
            if let Some((_, name)) = line.split_once(" of event '") {
                event = name.trim_end_matches('\'').to_owned();
            }
            let cells: Vec<_> = line.split('|').map(str::trim).collect();
            if let ([period, samples, _, module], false) = (&cells[..], line.starts_with('#')) {
                let sum: &mut (i64, u64) = theirs.entry((event.clone(), (*module).to_owned())).or_default();
                *sum = (sum.0 + period.parse::<i64>().unwrap(), sum.1 + samples.parse::<u64>().unwrap());
            }
        }
        let collect = read(&read_corpus(&format!("perf/{name}.data")));
        let mut ours = BTreeMap::new();
        for sample in collect.samples() {
            let column = sample.values.iter().position(|&value| value != 0).unwrap();
            let event = collect.segments[0].value_types[column].0.clone();
            let (module, _) = sample.frames_leaf_first[0].native.as_ref().unwrap();
            let module = module.rsplit('/').next().unwrap().to_owned();
            let sum: &mut (i64, u64) = ours.entry((event, module)).or_default();
            *sum = (sum.0 + sample.values[column], sum.1 + 1);
        }
        assert!(!theirs.is_empty());
        assert_eq!(ours, theirs, "{name}");
    }
}

#[test]
fn addresses_are_those_in_the_module_and_the_machine_is_described() {
    let collect = read(&read_corpus("perf/threads.data"));
    let mut frames = collect.samples().flat_map(|sample| &sample.frames_leaf_first);
    // The loop of `hot`, wherever the program was loaded.
    assert!(frames.any(|frame| frame.function == "0x1224"));
    let of = |key: &str| {
        let metadata = collect.segments[0].metadata.iter();
        metadata.filter(|(known, _)| known == key).map(|(_, value)| value.clone()).collect::<Vec<_>>()
    };
    assert_eq!(of("host"), ["perf-host"]);
    assert!(of("command line")[0].ends_with("-o threads.data sh -c ./work; ./work"));
}

/// Writes files of a few records.
struct Recording {
    is_big: bool,
    data: Vec<u8>,
}

const SAMPLE_TYPE: u64 = 1 | 1 << 1 | 1 << 2 | 1 << 5 | 1 << 8;

impl Recording {
    fn number(&self, bytes: &[u8]) -> Vec<u8> {
        let mut bytes = bytes.to_vec();
        if self.is_big {
            bytes.reverse();
        }
        bytes
    }

    fn words(&self, words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|word| self.number(&word.to_le_bytes())).collect()
    }

    fn halves(&self, halves: &[u32]) -> Vec<u8> {
        halves.iter().flat_map(|half| self.number(&half.to_le_bytes())).collect()
    }

    /// Adds a record, whose time stands behind it if it is no sample.
    fn record(&mut self, kind: u32, misc: u16, parts: &[&[u8]], time: Option<u64>) {
        let mut payload = parts.concat();
        payload.resize(payload.len().next_multiple_of(8), 0);
        if let Some(time) = time {
            payload.extend(self.halves(&[0, 0]));
            payload.extend(self.words(&[time]));
        }
        let size = u16::try_from(payload.len() + 8).unwrap();
        let head = [self.halves(&[kind]), self.number(&misc.to_le_bytes()), self.number(&size.to_le_bytes())];
        self.data.extend(head.concat());
        self.data.extend(payload);
    }

    fn comm(&mut self, misc: u16, ids: [u32; 2], name: &str, time: u64) {
        let ids = self.halves(&ids);
        self.record(3, misc, &[&ids, name.as_bytes(), b"\0"], Some(time));
    }

    fn map(&mut self, ids: [u32; 2], [start, size, offset]: [u64; 3], file: &str, time: u64) {
        let (ids, range) = (self.halves(&ids), self.words(&[start, size, offset]));
        self.record(1, 2, &[&ids, &range, file.as_bytes(), b"\0"], Some(time));
    }

    fn fork(&mut self, ids: [u32; 4], time: u64) {
        let (ids, time_again) = (self.halves(&ids), self.words(&[time]));
        self.record(7, 0, &[&ids, &time_again], Some(time));
    }

    fn sample(&mut self, ids: [u32; 2], time: u64, chain: &[u64]) {
        let before = self.words(&[chain.first().copied().unwrap_or(0x77)]);
        let (ids, rest) = (self.halves(&ids), self.words(&[time, 5000, chain.len() as u64]));
        let chain = self.words(chain);
        self.record(9, 2, &[&before, &ids, &rest, &chain], None);
    }

    fn round(&mut self) {
        self.record(68, 0, &[], None);
    }

    /// The file, whose header says that it has `data_size` bytes of records.
    fn file(&self, data_size: u64) -> Vec<u8> {
        let flags: u64 = 1 << 18;
        let flags = if self.is_big {
            flags.to_le_bytes().map(u8::reverse_bits).to_vec()
        } else {
            flags.to_le_bytes().to_vec()
        };
        let magic = if self.is_big { b"2ELIFREP" } else { b"PERFILE2" };
        let header = self.words(&[104, 64, 104, 64, 168, data_size, 0, 0, 0, 0, 0, 0]);
        let attribute = [self.halves(&[1, 48]), self.words(&[0, 5000, SAMPLE_TYPE, 0]), flags];
        let ids = self.words(&[0, 0]);
        [&magic[..], &header, &attribute.concat(), &ids, &self.data].concat()
    }

    fn whole(&self) -> Vec<u8> {
        self.file(self.data.len() as u64)
    }
}

/// A process that forks; its child runs another program. The records of one CPU come before older ones of the other.
fn of_two_programs(is_big: bool) -> Recording {
    let mut recording = Recording { is_big, data: Vec::new() };
    recording.comm(0, [7, 7], "shell", 0);
    recording.map([7, 7], [0x1000, 0x1000, 0x200], "/bin/shell", 0);
    recording.sample([7, 7], 300, &[512_u64.wrapping_neg(), 0x1010]);
    recording.sample([8, 8], 500, &[128_u64.wrapping_neg(), 0xffff, 512_u64.wrapping_neg(), 0x1010]);
    recording.round();
    recording.fork([8, 7, 8, 7], 100);
    recording.sample([8, 8], 200, &[0x1010]);
    recording.comm(1 << 13, [8, 8], "tool", 400);
    recording.map([8, 8], [0x1000, 0x1000, 0], "/bin/tool", 410);
    recording.round();
    recording.sample([8, 8], 600, &[]);
    recording
}

#[test]
fn records_are_taken_in_order_of_time_in_both_byte_orders() {
    for is_big in [false, true] {
        let collect = read(&of_two_programs(is_big).whole());
        let found: Vec<_> = collect
            .samples()
            .map(|sample| {
                let frames = sample.frames_leaf_first.iter().map(|frame| {
                    let module = frame.native.as_ref().map_or("-", |(module, _)| module);
                    format!("{} {module}", frame.function)
                });
                (sample.time_ns.unwrap(), sample.process.unwrap(), frames.collect::<Vec<_>>().join(", "))
            })
            .collect();
        let expected = [
            (200, 8, "0x210 /bin/shell"),
            (300, 7, "0x210 /bin/shell"),
            (500, 8, "0xffff -, 0x10 /bin/tool"),
            (600, 8, "0x77 -"),
        ];
        assert_eq!(found, expected.map(|(time, process, frames)| (time, process, frames.to_owned())));
        let names = collect.thread_names.iter().map(|(thread, name)| (*thread, &**name));
        assert_eq!(names.collect::<Vec<_>>(), [(8, "shell"), (7, "shell"), (8, "tool")]);
        assert_eq!(collect.segments[0].value_types, [("cpu-clock".to_owned(), "nanoseconds".to_owned())]);
        assert!(collect.samples().all(|sample| sample.values == [5000]));
    }
}

#[test]
fn a_recording_that_was_killed_has_what_was_written() {
    let recording = of_two_programs(false);
    let (collect, recovery) = read_with(&recording.file(0), &ReadOptions::default()).unwrap();
    assert_eq!(collect.count(), 4);
    assert_eq!(recovery.warnings[0].message, "the recording was not finished");
    let whole = recording.whole();
    let (collect, recovery) = read_with(&whole[..whole.len() - 5], &ReadOptions::default()).unwrap();
    assert_eq!((collect.count(), &*recovery.warnings[0].message), (3, "truncated"));
}

#[test]
fn lost_records_and_copied_stacks_are_noted() {
    let mut recording = of_two_programs(false);
    let lost = recording.words(&[1, 23]);
    recording.record(2, 0, &[&lost], Some(700));
    let (_, recovery) = read_with(&recording.whole(), &ReadOptions::default()).unwrap();
    assert_eq!(recovery.notes[0].message, "perf lost 23 records while it recorded");
    let mut copied = recording.whole();
    // The bit of copied stacks, in the attribute's sample type.
    copied[104 + 24 + 1] |= 1 << 5;
    let (_, recovery) = read_with(&copied, &ReadOptions::default()).unwrap();
    assert!(recovery.notes[1].message.contains("perf script follows them"), "{:?}", recovery.notes);
}

#[test]
fn what_is_not_read_is_named() {
    let mut recording = of_two_programs(false);
    recording.record(81, 0, &[b"compress"], None);
    let error = read_with(&recording.whole(), &ReadOptions::lenient()).err().unwrap();
    assert!(error.is_unsupported() && error.message().contains("without -z"), "{error}");
    let error = read_with(b"PERFILE2\x20\0\0\0\0\0\0\0", &ReadOptions::default()).err().unwrap();
    assert_eq!(error.message(), "unsupported header: expected 104 or 16 bytes, found 32");
}

#[test]
fn a_damaged_record_costs_itself() {
    let mut recording = of_two_programs(false);
    let chain = recording.words(&[0x10, 0, 650, 5000, u64::MAX]);
    recording.record(9, 2, &[&chain], None);
    recording.sample([8, 8], 700, &[0x1010]);
    let error = read_with(&recording.whole(), &ReadOptions::default()).err().unwrap();
    assert!(error.is_malformed(), "{error}");
    let (collect, recovery) = read_with(&recording.whole(), &ReadOptions::lenient()).unwrap();
    assert_eq!((collect.count(), recovery.lost_bytes), (5, 48));
    recording.data.extend([0; 32]);
    let error = read_with(&recording.whole(), &ReadOptions::default()).err().unwrap();
    assert!(error.message().starts_with("expected a record of at least 8 bytes, found 0"), "{error}");
}

#[test]
fn every_prefix_and_every_changed_byte_is_survived() {
    for bytes in [read_corpus("perf/flat.data").to_vec(), of_two_programs(true).whole()] {
        for cut in (0..bytes.len()).step_by(3) {
            let _ = read_with(&bytes[..cut], &ReadOptions::default());
        }
        each_change(&bytes, 3, &[0, 1, 0x7f, 0xff], |changed, at| {
            let lenient = read_with(changed, &ReadOptions::lenient());
            assert!(lenient.as_ref().err().is_none_or(Error::is_unsupported), "{at}");
        });
    }
}

#[test]
fn mappings_that_processes_share_are_held_once() {
    let mut recording = Recording { is_big: false, data: Vec::new() };
    for start in 1..1000 {
        recording.map([7, 7], [start * 0x1000, 0x1000, 0], "/bin/shell", 0);
    }
    let limited = |recording: &Recording| {
        let mut options = ReadOptions::default();
        options.limits.memory_bytes = 4 << 20;
        read_with(&recording.whole(), &options)
    };
    for child in 0..1000 {
        recording.fork([100 + child, 7, 100 + child, 7], 10);
    }
    assert!(limited(&recording).is_ok());
    for child in 0..1000 {
        recording.map([100 + child, 100 + child], [0x100, 0x10, 0], "/own", 20);
    }
    assert!(limited(&recording).err().unwrap().is_memory());
}
