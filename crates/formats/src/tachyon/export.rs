//! Exports the model to `tachyon`.

use std::io::{self, Read, Seek, Write};
use std::ops::ControlFlow;

use borehole_model::{
    Column, Context, Frame, FrameId, Mode, ProfileSink, Sample, Segment, StackId, StringId, Tables,
};

use borehole_wire::Compression;

use super::NAME;
use super::layout::{ByteOrder, HeaderLayout, MAX_DEPTH};
use super::metadata::HeaderFacts;
use super::opcodes::Opcodes;
use super::statistics::Statistics;
use super::write::{FrameSlot, PythonFrame, SampleOrder, ThreadSlot, Writer, WriterOptions};
use crate::times::one_period::OnePeriod;
use crate::{Export, Losses, WriteOptions};

/// The options of an export to `tachyon`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExportOptions {
    /// The compression of the samples, none or Zstandard; `None` for that of the source, or else Zstandard.
    pub compression: Option<Compression>,
    /// The byte order of numbers.
    pub byte_order: ByteOrder,
    /// The layout of the header.
    pub layout: HeaderLayout,
    /// The sampling period in microseconds, for sources without a known one.
    pub period_us: Option<u32>,
}

impl ExportOptions {
    /// The format's own options, with the period of all formats unless they have one.
    #[must_use]
    pub fn of(options: &WriteOptions) -> Self {
        let own: Self = options.get();
        Self { period_us: own.period_us.or(options.period_us), ..own }
    }
}

/// The default period of CPython's profiler.
///
/// Source: CPython 3.15.2, `--sampling-rate`, default 1 kHz.
const DEFAULT_PERIOD_US: u64 = 1000;

/// The status of a thread with an unknown state.
const UNKNOWN_STATUS: u8 = 4;

/// The longest run accepted: a run of one sample becomes one record per observation.
const MAX_RUN: u64 = 1 << 24;

/// The version of Python written if the source names none.
const PYTHON: [u8; 3] = [3, 15, 2];

/// Writes samples as one file. The header holds the period and Python's version of the first segment, and those of its
/// other metadata on which all segments agree.
///
/// A sample without a time follows the one before it after a period. Of a stack that is too deep, the innermost frames
/// are kept below a frame that marks the cut. Nothing is written before `finish`: samples wait in the spool that
/// `make_spool` creates, and memory grows with the distinct contents.
pub struct Exporter<W, S: Write, F> {
    output: Option<W>,
    make_spool: F,
    journal: Option<Box<dyn Write + Send>>,
    /// Whether the writer has a journal.
    is_journaled: bool,
    options: ExportOptions,
    writer: Option<Writer<S>>,
    /// The contents of the header; empty before there is a writer.
    header: HeaderFacts,
    /// The period of the header, once there is one.
    period_us: OnePeriod,
    defined: DefinedFrames,
    clock: Clock,
    lost: LostParts,
}

/// The writer's ids of the tables' frames, and the last stack of each thread.
struct DefinedFrames {
    opcodes: Opcodes,
    frames: Column<FrameSlot>,
    /// By thread: its last stack written.
    stacks: Column<Option<StackId>>,
    scratch: Vec<FrameSlot>,
    /// The number of distinct frames with opcodes unknown to Python, or with native locations.
    unknown_opcodes: u64,
    native_offsets: u64,
    /// The number of distinct frames with lines or columns of more than 31 bits.
    large_locations: u64,
}

/// Assigns times to samples without one.
#[derive(Clone, Copy, Debug, Default)]
struct Clock {
    period_us: u64,
    /// The time of the last sample; before the first, the start of profiling.
    last_us: u64,
}

/// The parts of samples that could not be kept.
#[derive(Clone, Copy, Debug, Default)]
struct LostParts {
    labels: u64,
    values: u64,
    processes: u64,
    times: u64,
    deep: u64,
    metadata: u64,
}

impl<W, S, F> Exporter<W, S, F>
where
    W: Write,
    S: Read + Write + Seek,
    F: FnMut() -> io::Result<S>,
{
    /// Creates an exporter to `output`; `make_spool` creates an empty temporary file, and is called once.
    pub fn new(output: W, options: ExportOptions, make_spool: F) -> Self {
        Self {
            output: Some(output),
            make_spool,
            journal: None,
            is_journaled: false,
            options,
            writer: None,
            header: HeaderFacts::default(),
            period_us: OnePeriod::default(),
            defined: DefinedFrames {
                opcodes: Opcodes::of(PYTHON[0], PYTHON[1]),
                frames: Column::default(),
                stacks: Column::default(),
                scratch: Vec::new(),
                unknown_opcodes: 0,
                native_offsets: 0,
                large_locations: 0,
            },
            clock: Clock::default(),
            lost: LostParts::default(),
        }
    }

    /// Also writes names to `journal`, so that the spool can be recovered if it outlives the program: see
    /// [`Writer::with_journal`]. [`Export::flush`] has an effect only with a journal.
    #[must_use]
    pub fn with_journal(mut self, journal: impl Write + Send + 'static) -> Self {
        self.journal = Some(Box::new(journal));
        self
    }

    /// Begins the file with the facts of the first segment.
    fn open(&mut self, facts: &HeaderFacts, segment: &Segment, start_us: u64) -> io::Result<()> {
        let python = facts.python.unwrap_or(PYTHON);
        self.defined.opcodes = Opcodes::of(python[0], python[1]);
        let interval_us = self.interval_us(segment);
        self.period_us.segment(Some(interval_us));
        let order = if segment.format == NAME { SampleOrder::File } else { SampleOrder::Arrival };
        let options = WriterOptions {
            byte_order: self.options.byte_order,
            layout: self.options.layout,
            compression: self.options.compression.or(facts.compression).unwrap_or(Compression::Zstd),
            python,
            start_us,
            interval_us,
            config: facts.config,
            order,
        };
        let mut writer = Writer::new((self.make_spool)()?, options)?;
        if let Some(journal) = self.journal.take() {
            writer = writer.with_journal(journal)?;
            self.is_journaled = true;
        }
        writer.set_statistics(facts.statistics);
        if self.options.layout == HeaderLayout::Old {
            self.lost.metadata += facts.config.entries();
        }
        self.writer = Some(writer);
        self.header = *facts;
        self.clock.last_us = start_us;
        Ok(())
    }

    /// The duration of the samples of a segment.
    fn interval_us(&self, segment: &Segment) -> u64 {
        let asked = self.options.period_us.map(u64::from);
        period_us(segment).or(asked).or(self.period_us.known()).unwrap_or(DEFAULT_PERIOD_US)
    }

    /// Removes from the header the facts that do not hold for a further segment.
    fn join(&mut self, facts: &HeaderFacts) {
        let Some(writer) = &mut self.writer else { return };
        let header = &mut self.header;
        if facts.python != header.python {
            self.lost.metadata += u64::from(facts.python.is_some());
        }
        if facts.statistics != header.statistics {
            self.lost.metadata +=
                [facts.statistics, header.statistics].iter().flatten().map(Statistics::entries).sum::<u64>();
            header.statistics = None;
            writer.set_statistics(None);
        }
        let common = header.config.common(facts.config);
        if common != facts.config || common != header.config {
            self.lost.metadata += facts.config.entries() + header.config.entries() - 2 * common.entries();
            header.config = common;
            writer.set_config(common);
        }
    }

    /// Ensures that there is a writer: it is created at the first sample if the segment did not state the start of
    /// profiling.
    fn ensure_open(&mut self, at: Context<'_>, sample: &Sample<'_>) -> io::Result<()> {
        if self.writer.is_some() {
            return Ok(());
        }
        let start_us = sample.time_ns.map_or(0, time_us);
        self.open(&HeaderFacts::of(at.segment, at.tables), at.segment, start_us)
    }

    fn count_losses(&mut self, at: Context<'_>, sample: &Sample<'_>) {
        let count = |lost: bool| if lost { sample.count } else { 0 };
        self.lost.labels += count(sample.labels.is_some());
        self.lost.values += count(!sample.values.is_empty());
        self.lost.processes += count(at.process(sample).is_some());
        let has_fraction = sample.time_ns.is_some_and(|ns| ns % 1000 != 0)
            || at.segment.period_ns.is_some_and(|ns| ns % 1000 != 0);
        self.lost.times += count(has_fraction);
        self.period_us.sample(sample.count);
        self.lost.deep += count(depth(sample.stack, at.tables) > MAX_DEPTH);
    }
}

/// The period in whole microseconds; `None` for 0, which means unknown.
fn period_us(segment: &Segment) -> Option<u64> {
    segment.period_ns.map(|ns| (ns.saturating_add(500) / 1000).max(ns.min(1)))
}

fn depth(stack: Option<StackId>, tables: &Tables) -> usize {
    stack.map_or(0, |stack| tables.depth(stack) as usize)
}

/// Microseconds in the format's form: two's complement for times before the clock's origin.
const fn time_us(ns: i64) -> u64 {
    ns.div_euclid(1000).cast_unsigned()
}

impl Clock {
    /// The time of a sample: its own, or the time since the sample before according to its source, or one period later.
    fn of(&self, sample: &Sample<'_>) -> u64 {
        let since = sample.delta_us.map_or(self.period_us, i64::cast_unsigned);
        sample.time_ns.map_or_else(|| self.last_us.wrapping_add(since), time_us)
    }
}

impl DefinedFrames {
    /// Writes one observation. A stack equal to the thread's last one is not examined.
    #[inline]
    fn write<S: Read + Write + Seek>(
        &mut self,
        writer: &mut Writer<S>,
        thread: ThreadSlot,
        observed: (u64, u8),
        stack: Option<StackId>,
        tables: &Tables,
    ) -> io::Result<()> {
        let (time_us, status) = observed;
        if self.stacks.get(thread.index()) == Some(stack) {
            return writer.write_repeat(thread, time_us, status);
        }
        self.stacks.set(thread.index(), stack);
        let mut frames = std::mem::take(&mut self.scratch);
        frames.clear();
        self.frames_of(stack, tables, writer, &mut frames)?;
        writer.write_sample(thread, time_us, status, &frames)?;
        self.scratch = frames;
        Ok(())
    }

    /// The frames of a stack, the leaf first; if it is too deep, only the innermost and a mark.
    fn frames_of<S: Read + Write + Seek>(
        &mut self,
        stack: Option<StackId>,
        tables: &Tables,
        writer: &mut Writer<S>,
        frames: &mut Vec<FrameSlot>,
    ) -> io::Result<()> {
        let is_too_deep = depth(stack, tables) > MAX_DEPTH;
        let kept = if is_too_deep { MAX_DEPTH - 1 } else { MAX_DEPTH };
        for frame in tables.frames_leaf_first(stack).take(kept) {
            frames.push(self.frame(frame, tables, writer)?);
        }
        if is_too_deep {
            frames.push(writer.define_frame(&marker(b"<truncated>"))?);
        }
        Ok(())
    }

    #[inline]
    fn frame<S: Read + Write + Seek>(
        &mut self,
        frame: FrameId,
        tables: &Tables,
        writer: &mut Writer<S>,
    ) -> io::Result<FrameSlot> {
        match self.frames.get(frame.index()) {
            Some(known) => Ok(known),
            None => self.new_frame(frame, tables, writer),
        }
    }

    #[cold]
    fn new_frame<S: Read + Write + Seek>(
        &mut self,
        id: FrameId,
        tables: &Tables,
        writer: &mut Writer<S>,
    ) -> io::Result<FrameSlot> {
        let frame = tables.frame(id);
        let opcode = frame.opcode.and_then(|name| self.opcodes.number(tables.string(name)));
        self.unknown_opcodes += u64::from(frame.opcode.is_some() && opcode.is_none());
        self.native_offsets += u64::from(frame.native.is_some());
        self.large_locations += u64::from(has_large_location(&frame));
        let defined = writer.define_frame(&PythonFrame { opcode, ..frame_def(&frame, tables) })?;
        Ok(self.frames.set(id.index(), defined))
    }
}

/// A frame without an opcode. Lines and columns that the format cannot hold are stored as unknown.
fn frame_def<'a>(frame: &Frame, tables: &'a Tables) -> PythonFrame<'a> {
    let file = frame.file.or(frame.native.map(|native| native.module));
    let line = |line: Option<i64>| line.and_then(|line| i32::try_from(line).ok()).unwrap_or(-1);
    let column = |column: Option<u32>| column.and_then(|column| i32::try_from(column).ok()).unwrap_or(-1);
    PythonFrame {
        file: file.map_or(NO_FILE, |file| tables.string(file)),
        function: tables.string(frame.function),
        line: line(frame.line),
        end_line: line(frame.end_line),
        column: column(frame.column),
        end_column: column(frame.end_column),
        opcode: None,
    }
}

/// Whether the format cannot hold the frame's line or column.
fn has_large_location(frame: &Frame) -> bool {
    let lines = [frame.line, frame.end_line];
    let columns = [frame.column, frame.end_column].map(|column| column.map(i64::from));
    lines.into_iter().chain(columns).flatten().any(|number| i32::try_from(number).is_err())
}

/// CPython's placeholder for the file of a frame without one.
const NO_FILE: &[u8] = b"~";

/// A frame that is not a function.
const fn marker(name: &[u8]) -> PythonFrame<'_> {
    PythonFrame {
        file: NO_FILE,
        function: name,
        line: -1,
        end_line: -1,
        column: -1,
        end_column: -1,
        opcode: None,
    }
}

impl<W, S, F> ProfileSink for Exporter<W, S, F>
where
    W: Write,
    S: Read + Write + Seek,
    F: FnMut() -> io::Result<S>,
{
    fn sample(&mut self, at: Context<'_>, sample: &Sample<'_>) -> io::Result<ControlFlow<()>> {
        self.ensure_open(at, sample)?;
        if sample.count > MAX_RUN {
            return Err(too_many_equal_samples(sample.count));
        }
        self.count_losses(at, sample);
        let interpreter = u32::try_from(sample.interpreter.unwrap_or(0))
            .map_err(|_| io::Error::other("interpreter number too large: expected less than 2^32"))?;
        let Some(writer) = &mut self.writer else { return Ok(ControlFlow::Continue(())) };
        let thread = writer.thread(sample.thread.unwrap_or(0), interpreter)?;
        let status = sample.status.map_or(UNKNOWN_STATUS, |status| status.0);
        for index in 0..sample.count {
            let later_us = self.clock.last_us.wrapping_add(self.clock.period_us);
            self.clock.last_us = if index == 0 { self.clock.of(sample) } else { later_us };
            let observed = (self.clock.last_us, status);
            self.defined.write(writer, thread, observed, sample.stack, at.tables)?;
        }
        Ok(ControlFlow::Continue(()))
    }

    fn segment(&mut self, at: Context<'_>) -> io::Result<()> {
        self.clock.period_us = self.interval_us(at.segment);
        let facts = HeaderFacts::of(at.segment, at.tables);
        self.lost.metadata += facts.others;
        match at.segment.began_ns.map(time_us) {
            Some(start_us) if self.writer.is_none() => self.open(&facts, at.segment, start_us)?,
            // A segment without facts continues with the earlier ones.
            _ if !at.segment.metadata.is_empty() || at.segment.mode != Mode::Wall => self.join(&facts),
            _ => {}
        }
        // A header still to be written gets the period of the segment.
        if self.writer.is_some() {
            self.period_us.segment(period_us(at.segment));
        }
        Ok(())
    }

    fn metadata(&mut self, _at: Context<'_>, _key: StringId, _value: StringId) -> io::Result<()> {
        self.lost.metadata += 1;
        Ok(())
    }

    fn finish(&mut self, tables: &Tables) -> io::Result<()> {
        if self.writer.is_none() {
            let segment = Segment::default();
            self.open(&HeaderFacts::of(&segment, tables), &segment, 0)?;
        }
        match (self.writer.take(), self.output.take()) {
            (Some(writer), Some(output)) => writer.finish(output),
            _ => Ok(()),
        }
    }
}

#[cold]
fn too_many_equal_samples(count: u64) -> io::Error {
    io::Error::other(format!(
        "too many equal samples for tachyon, which has no counts: expected at most {MAX_RUN}, found {count}; \
         write rbt or pprof instead"
    ))
}

impl<W, S, F> Export for Exporter<W, S, F>
where
    W: Write,
    S: Read + Write + Seek,
    F: FnMut() -> io::Result<S>,
{
    fn flush(&mut self) -> io::Result<()> {
        match &mut self.writer {
            Some(writer) if self.is_journaled => writer.flush(),
            _ => Ok(()),
        }
    }

    fn losses(&self) -> Losses {
        let LostParts { labels, values, processes, times, deep, metadata } = self.lost;
        let mut losses = Losses::default();
        losses.add("annotations", labels);
        losses.add("measured values", values);
        losses.add("process ids", processes);
        losses.add("native frame offsets", self.defined.native_offsets);
        losses.add("opcodes unknown to Python", self.defined.unknown_opcodes);
        losses.add("lines and columns above 2147483647", self.defined.large_locations);
        losses.add("fractions of microseconds", times);
        losses.add("outer frames of stacks deeper than 256", deep);
        self.period_us.report(&mut losses);
        losses.add("metadata entries", metadata);
        losses
    }
}
