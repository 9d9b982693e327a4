//! Writers that are killed: flushed samples are recovered, including names.

use borehole_formats::Compression;
use std::io::{self, Cursor, Read, Seek, SeekFrom, Write};
use std::sync::{Arc, Mutex};

use borehole_formats::ReadOptions;
use borehole_formats::tachyon::{
    ByteOrder, FrameSlot, HeaderLayout, PythonFrame, Reader, SampleOrder, Writer, WriterOptions,
};

use super::{PlainSample, comparable, options_of, plain_frame, read_well, real, real_names, simple_frame};

/// A file that outlives its writer.
#[derive(Clone, Default)]
struct Disk(Arc<Mutex<Cursor<Vec<u8>>>>);

impl Disk {
    fn content(&self) -> Vec<u8> {
        self.0.lock().unwrap().get_ref().clone()
    }
}

impl Write for Disk {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Read for Disk {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.0.lock().unwrap().read(bytes)
    }
}

impl Seek for Disk {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.0.lock().unwrap().seek(to)
    }
}

/// A writer, with the spool and the journal that it leaves.
fn journaled(options: WriterOptions) -> (Writer<Disk>, Disk, Disk) {
    let (spool, journal) = (Disk::default(), Disk::default());
    let writer = Writer::new(spool.clone(), options).unwrap().with_journal(journal.clone()).unwrap();
    (writer, spool, journal)
}

/// The samples recovered from spool and journal, by thread, because runs that ended early are elsewhere.
fn saved(spool: &[u8], journal: &[u8]) -> Vec<PlainSample> {
    let mut reader = Reader::with_journal(spool, journal, ReadOptions::lenient()).unwrap();
    let mut samples = Vec::new();
    while let Some(sample) = reader.next_sample().unwrap() {
        let frames = sample.frames_root_first.iter().rev();
        samples.push(PlainSample {
            thread: sample.thread,
            interpreter: sample.interpreter,
            time_us: sample.time_us,
            status: sample.status,
            frames_leaf_first: frames.map(|&frame| plain_frame(sample.tables, frame)).collect(),
        });
    }
    let said = &reader.recovery().warnings[0].message;
    assert!(said.starts_with("unfinished file: "), "{said}");
    by_thread(samples)
}

fn by_thread(mut samples: Vec<PlainSample>) -> Vec<PlainSample> {
    samples.sort_by_key(|sample| (sample.thread, sample.interpreter));
    samples
}

fn define(writer: &mut Writer<Disk>, frame: &super::PlainFrame) -> FrameSlot {
    let (file, function, place, opcode) = frame;
    let number = |index: usize| place.map_or(-1, |place| i32::try_from(place[index]).unwrap());
    let def = PythonFrame {
        line: number(0),
        end_line: number(1),
        column: number(2),
        end_column: number(3),
        opcode: *opcode,
        ..simple_frame(file, function, 1)
    };
    writer.define_frame(&def).unwrap()
}

fn write(writer: &mut Writer<Disk>, samples: &[PlainSample]) {
    for sample in samples {
        let thread = writer.thread(sample.thread, sample.interpreter).unwrap();
        let frames: Vec<_> = sample.frames_leaf_first.iter().map(|frame| define(writer, frame)).collect();
        writer.write_sample(thread, sample.time_us, sample.status, &frames).unwrap();
    }
}

#[test]
fn every_sample_that_was_flushed_comes_back_with_its_names() {
    let mut compared = 0;
    for name in real_names() {
        let bytes = real(&name);
        let whole = read_well(&bytes);
        let half = &whole[..whole.len() / 2];
        for compression in [Compression::None, Compression::Zstd] {
            let start_us = Reader::new(&bytes).unwrap().header().start_us;
            let options = WriterOptions { compression, start_us, ..WriterOptions::default() };
            let (mut writer, spool, journal) = journaled(options);
            write(&mut writer, half);
            writer.flush().unwrap();
            write(&mut writer, &whole[half.len()..(half.len() + 3).min(whole.len())]);
            drop(writer);
            let expected = by_thread(half.to_vec());
            let found = saved(&spool.content(), &journal.content());
            assert!(found == expected, "{name}: {} of {}", found.len(), expected.len());
            compared += found.len();
        }
    }
    assert!(compared > 10_000, "{compared}");
}

#[test]
fn without_a_flush_written_buffers_are_recovered() {
    let (mut writer, spool, journal) =
        journaled(WriterOptions { compression: Compression::None, ..WriterOptions::default() });
    let slot = writer.thread(7, 0).unwrap();
    let mut written = Vec::new();
    for time_us in 0..20_000 {
        let name = format!("f{}", time_us % 5000);
        let frames =
            ["leaf", &name].map(|name| writer.define_frame(&simple_frame("/a.py", name, 3)).unwrap());
        writer.write_sample(slot, time_us, 1, &frames).unwrap();
        written.push(name);
    }
    drop(writer);
    let (spool, journal) = (spool.content(), journal.content());
    let found = saved(&spool, &journal);
    assert!(found.len() > 15_000, "{}", found.len());
    for (sample, name) in found.iter().zip(&written) {
        assert_eq!((&*sample.frames_leaf_first[0].1, &sample.frames_leaf_first[1].1), ("leaf", name));
    }
    // A truncated journal has the names before the cut.
    let cut = saved(&spool, &journal[..journal.len() / 2]);
    assert_eq!(cut.len(), found.len());
    assert_eq!(cut[0], found[0]);
    assert!(cut.last().unwrap().frames_leaf_first[1].1.starts_with("frame#"));
}

#[test]
fn a_journal_changes_nothing_of_the_file() {
    for name in ["05_threads20_none", "06_threads20_zstd", "21_slow_10hz"] {
        let bytes = real(name);
        let reader = Reader::new(&bytes).unwrap();
        let (mut writer, ..) =
            journaled(WriterOptions { order: SampleOrder::File, ..options_of(reader.header()) });
        writer.set_statistics(reader.statistics().copied());
        write(&mut writer, &read_well(&bytes));
        let mut out = Vec::new();
        writer.finish(&mut out).unwrap();
        assert!(comparable(&out) == comparable(&bytes), "{name}");
    }
}

#[test]
fn flushing_ends_runs_and_loses_no_sample() {
    let (mut writer, ..) = journaled(WriterOptions::default());
    let whole = read_well(&real("05_threads20_none"));
    for samples in whole.chunks(100) {
        write(&mut writer, samples);
        writer.flush().unwrap();
        writer.flush().unwrap();
    }
    let mut out = Vec::new();
    writer.finish(&mut out).unwrap();
    assert!(by_thread(read_well(&out)) == by_thread(whole));
}

#[test]
fn the_facts_of_the_header_survive_in_both_byte_orders() {
    for &byte_order in ByteOrder::ALL {
        let options = WriterOptions {
            byte_order,
            layout: HeaderLayout::Old,
            start_us: 77,
            interval_us: 250,
            python: [3, 15, 1],
            ..WriterOptions::default()
        };
        let (mut writer, spool, journal) = journaled(options);
        let frame = writer.define_frame(&simple_frame("/a.py", "f", 1)).unwrap();
        let slot = writer.thread(1, 2).unwrap();
        writer.write_sample(slot, 99, 0, &[frame]).unwrap();
        writer.flush().unwrap();
        let (spool, journal) = (spool.content(), journal.content());
        let reader = Reader::with_journal(&spool, &journal, ReadOptions::lenient()).unwrap();
        let header = *reader.header();
        assert_eq!((header.start_us, header.interval_us, header.python), (77, 250, [3, 15, 1]));
        assert_eq!(saved(&spool, &journal)[0].time_us, 99);
        // A strict read reports an incomplete file.
        assert!(Reader::with_journal(&spool, &journal, ReadOptions::default()).is_err());
    }
}

#[test]
fn the_journal_of_another_file_is_refused() {
    let options = WriterOptions { start_us: 1, ..WriterOptions::default() };
    let (_ours, spool, _) = journaled(options);
    let (_theirs, _, journal) = journaled(WriterOptions { start_us: 2, ..options });
    let (spool, journal) = (spool.content(), journal.content());
    let foreign = "the journal belongs to another file";
    for (spool, journal, message) in [
        (&*spool, &*journal, foreign),
        (&*spool, b"", foreign),
        (b"", &*journal, "expected a header of 64 bytes, found 0 bytes"),
    ] {
        let refused = Reader::with_journal(spool, journal, ReadOptions::lenient()).err().unwrap();
        assert_eq!(refused.message(), message);
    }
}

#[test]
fn a_damaged_journal_costs_names_and_no_samples() {
    let (mut writer, spool, journal) = journaled(WriterOptions::default());
    let whole = read_well(&real("21_slow_10hz"));
    for samples in whole.chunks(10) {
        write(&mut writer, samples);
        writer.flush().unwrap();
    }
    let (spool, journal) = (spool.content(), journal.content());
    let expected = saved(&spool, &journal);
    assert_eq!(expected.len(), whole.len());
    let mut named = 0;
    for cut in 72..journal.len() {
        let found = saved(&spool, &journal[..cut]);
        let same = found.iter().zip(&expected).filter(|(found, sample)| found == sample).count();
        assert!(found.len() == expected.len() && same >= named, "{same} names before byte {cut}");
        named = same;
        let mut wrong = journal.clone();
        wrong[cut] ^= 0xff;
        assert_eq!(saved(&spool, &wrong).len(), expected.len());
    }
    assert!(named > 0);
}
