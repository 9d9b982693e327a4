//! The memory that writing takes: it grows with the stacks, and not with the text that repeats their frames.

use std::io::{self, Cursor, Write};
use std::sync::atomic::{AtomicU64, Ordering};

use borehole_formats::detect::Format;
use borehole_formats::registry::Destination;
use borehole_formats::{WriteOptions, jsonl};
use borehole_model::{Context, Frame, ProfileSink as _, Sample, Segment, StackId, Tables};
use borehole_testkit::allocations::allocations;

/// An output that only counts.
struct Counted<'a>(&'a AtomicU64);

impl Write for Counted<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Samples of the stacks of a recursion.
struct Recursion {
    tables: Tables,
    /// By depth.
    stacks: Vec<StackId>,
}

impl Recursion {
    /// A recursion of two functions that call each other.
    fn of(names: [&[u8]; 2], depth: usize) -> Self {
        let mut tables = Tables::default();
        let frames = names.map(|name| {
            let function = tables.intern_string(name).unwrap();
            tables.intern_frame(&Frame { line: Some(7), ..Frame::named(function) }).unwrap()
        });
        let mut stacks = Vec::new();
        for place in 0..depth {
            stacks.push(tables.intern_stack(stacks.last().copied(), frames[place % 2]).unwrap());
        }
        Self { tables, stacks }
    }

    /// Writes a sample of each of the last `count` stacks. Returns the bytes written, and the most bytes held for it.
    fn written(&self, format: Format, options: &WriteOptions, count: usize) -> (u64, u64) {
        let bytes = AtomicU64::new(0);
        let ((), found) = allocations(|| {
            let spool = || Ok(Box::new(Cursor::new(Vec::new())) as _);
            let to = Destination { output: Box::new(Counted(&bytes)), spool };
            let mut exporter = (format.exporter().unwrap().start)(to, options);
            let segment = Segment { has_times: true, period_ns: Some(1_000_000), ..Segment::default() };
            let at = Context { tables: &self.tables, segment: &segment };
            exporter.segment(at).unwrap();
            for (index, &stack) in self.stacks[self.stacks.len() - count..].iter().enumerate() {
                let time_ns = i64::try_from(index * 1_000_000).ok();
                // Some samples have no thread, so that lines of either kind are sorted.
                let thread = Some(5).filter(|_| index < count / 2);
                let sample = Sample { stack: Some(stack), count: 1, time_ns, thread, ..Sample::default() };
                let _ = exporter.sample(at, &sample).unwrap();
            }
            exporter.finish(&self.tables).unwrap();
        });
        (bytes.load(Ordering::Relaxed), found.peak_bytes)
    }
}

/// Every way to write a format.
fn writers() -> Vec<(&'static str, Format, WriteOptions)> {
    let mut flat = WriteOptions::default();
    flat.set(jsonl::ExportOptions { flat: true });
    let formats = Format::ALL.iter().filter(|format| format.exporter().is_some());
    let writers = formats.map(|&format| (format.facts().name, format, WriteOptions::default()));
    writers.chain([("jsonl --flat", Format::Jsonl, flat)]).collect()
}

/// The writers that hold more than `most` says, with what they held.
fn unbounded(recursion: &Recursion, count: usize, most: impl Fn(Format) -> u64) -> Vec<String> {
    let mut unbounded = Vec::new();
    for (name, format, options) in writers() {
        let (written, peak) = recursion.written(format, &options, count);
        if peak > most(format) {
            unbounded.push(format!("{name}: {peak} bytes held to write {written}"));
        }
    }
    unbounded
}

#[test]
fn a_long_name_in_a_deep_stack_is_written_frame_by_frame() {
    let name = vec![b'n'; 2_000];
    let other = [&b"x;"[..], &name].concat();
    let recursion = Recursion::of([&name, &other], 10_000);
    let unbounded = unbounded(&recursion, 2, |format| match format {
        // Pictures show 2,000 calls of 2,000 bytes each, and are made of whole stacks.
        Format::FlameGraph => 20 << 20,
        // The frames of a group of rows are held, and the pages that are made of them.
        Format::Parquet => 24 << 20,
        _ => 6 << 20,
    });
    assert_eq!(unbounded, [""; 0]);
}

#[test]
fn callers_that_stacks_share_are_held_once() {
    let recursion = Recursion::of([b"f", b"g"], 2_500);
    let unbounded = unbounded(&recursion, recursion.stacks.len(), |format| match format {
        // Pictures are made of whole stacks.
        Format::FlameGraph => 24 << 20,
        // It holds the stacks of the last samples, as far as there is room.
        Format::Trc => 20 << 20,
        // The frames of a group of rows are held, and the pages that are made of them.
        Format::Parquet => 80 << 20,
        _ => 3 << 20,
    });
    assert_eq!(unbounded, [""; 0]);
}

#[test]
fn a_long_path_does_not_stand_in_the_texts_of_many_frames() {
    let mut tables = Tables::default();
    let file = Some(tables.intern_string(&[b'p'; 1_000_000]).unwrap());
    let function = tables.intern_string(b"f").unwrap();
    let frames = (1..=100).map(|line| Frame { file, line: Some(line), ..Frame::named(function) });
    let frames: Vec<_> = frames.collect();
    let stacks = frames.iter().map(|frame| {
        let frame = tables.intern_frame(frame).unwrap();
        tables.intern_stack(None, frame).unwrap()
    });
    let stacks: Vec<_> = stacks.collect();
    let to = Destination { output: Box::new(Vec::new()), spool: || Err(io::ErrorKind::Unsupported.into()) };
    let mut exporter = (Format::Folded.exporter().unwrap().start)(to, &WriteOptions::default());
    let segment = Segment::default();
    let at = Context { tables: &tables, segment: &segment };
    exporter.segment(at).unwrap();
    for stack in stacks {
        let sample = Sample { stack: Some(stack), count: 1, ..Sample::default() };
        let _ = exporter.sample(at, &sample).unwrap();
    }
    let error = exporter.finish(&tables).unwrap_err().to_string();
    assert_eq!(error, "names too long: expected at most 67108864 bytes of names of functions");
}
