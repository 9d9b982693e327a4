//! Exports the model to `rbt`.

use std::borrow::Cow;
use std::io::{self, Write};
use std::ops::ControlFlow;

use borehole_model::{
    Context, FrameId, Label, LabelValue, LabelsId, ProfileSink, Sample, Segment, StackId, StringId, Tables,
};

use super::clock::CLOCK_KEY;
use super::column::put;
use super::frame_def::FrameDef;
use super::ids;
use super::layout::Header;
use super::segment_process::SegmentProcess;
use super::write::{SampleDef, Writer};
use crate::frames::function_name::FunctionName;
use crate::{Export, Losses, WriteOptions};

/// The options of an export to `rbt`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExportOptions {
    /// Whether samples carry timestamps.
    pub timestamps: Timestamps,
    /// The sampling period in microseconds, for segments without a known one. Default: 10,000, like reli.
    pub period_us: Option<u32>,
    /// The number of samples between two checkpoints; `None` for one at the end of each segment only.
    pub checkpoint_interval: Option<u64>,
}

impl ExportOptions {
    /// The format's own options, with the period of all formats unless they have one.
    #[must_use]
    pub fn of(options: &WriteOptions) -> Self {
        let own: Self = options.get();
        Self { period_us: own.period_us.or(options.period_us), ..own }
    }
}

/// Whether samples carry timestamps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Timestamps {
    /// As in the source of each segment.
    #[default]
    AsSource,
    /// Never: the smallest files.
    Never,
    /// Always; 0 if the time is unknown.
    Always,
}

/// The period that reli assumes if none is given.
///
/// Source: reli 0.12, `converter:rbt`, default of `--sampling-period`.
const DEFAULT_PERIOD_US: u32 = 10_000;

/// Writes samples as `rbt`: one segment per segment of the source, with its own period and metadata.
pub struct Exporter<W: Write> {
    /// The output before the first segment, the writer after it.
    state: ExportState<W>,
    options: ExportOptions,
    columns: WriterIds,
    has_timestamps: bool,
    /// The process in the metadata written for the segment.
    process: SegmentProcess,
    last_time_us: Option<i64>,
    /// Whether the segment lacks its wall clock, which precedes its first sample.
    lacks_clock: bool,
    losses: Losses,
}

enum ExportState<W: Write> {
    Unopened(W),
    Open(Box<Writer<W>>),
    Finished,
}

/// The writer's ids of the tables' frames and stacks, in the current segment.
#[derive(Default)]
struct WriterIds {
    frames: Vec<Option<ids::FrameId>>,
    stacks: Vec<Option<ids::StackId>>,
    empty_stack: Option<ids::StackId>,
    scratch: Vec<ids::FrameId>,
}

impl<W: Write> Exporter<W> {
    /// Creates an exporter to `output`.
    pub fn new(output: W, options: ExportOptions) -> Self {
        Self {
            state: ExportState::Unopened(output),
            options,
            columns: WriterIds::default(),
            has_timestamps: false,
            process: SegmentProcess::default(),
            last_time_us: None,
            lacks_clock: false,
            losses: Losses::default(),
        }
    }

    /// Counts the time of the first sample from `last_time_us`, the time of the last sample of the segment before. For
    /// callers that write each segment with its own exporter: the first segment of a source counts from its own first
    /// sample.
    #[must_use]
    pub const fn continuing(mut self, last_time_us: Option<i64>) -> Self {
        self.last_time_us = last_time_us;
        self
    }

    /// The time of the last sample that had one, in microseconds. `None` while segments carry no timestamps.
    #[must_use]
    pub const fn last_time_us(&self) -> Option<i64> {
        self.last_time_us
    }

    /// Completes the output and returns it; `None` if it was already complete.
    ///
    /// # Errors
    /// If the output cannot be written.
    pub fn into_output(mut self) -> io::Result<Option<W>> {
        self.complete()
    }

    /// Writes all buffered bytes. The output can then be read, though its last segment is not complete.
    ///
    /// # Errors
    /// If the output cannot be written.
    pub fn flush(&mut self) -> io::Result<()> {
        match &mut self.state {
            ExportState::Unopened(output) => output.flush(),
            ExportState::Open(writer) => writer.flush(),
            ExportState::Finished => Ok(()),
        }
    }

    fn complete(&mut self) -> io::Result<Option<W>> {
        if matches!(self.state, ExportState::Unopened(_)) {
            self.open(self.header(&Segment::default()))?;
        }
        match std::mem::replace(&mut self.state, ExportState::Finished) {
            ExportState::Open(writer) => writer.finish().map(Some),
            _ => Ok(None),
        }
    }

    fn header(&self, segment: &Segment) -> Header {
        let has_timestamps = match self.options.timestamps {
            Timestamps::AsSource => segment.has_times,
            Timestamps::Never => false,
            Timestamps::Always => true,
        };
        let period_us =
            segment.period_ns.map(nearest_us).or(self.options.period_us).unwrap_or(DEFAULT_PERIOD_US);
        Header { has_timestamps, period_us }
    }

    fn open(&mut self, header: Header) -> io::Result<&mut Writer<W>> {
        self.columns.forget();
        self.process = SegmentProcess::default();
        self.lacks_clock = true;
        if let ExportState::Open(writer) = &mut self.state {
            // This comes last: if a segment cannot begin, the one before must still be completed.
            writer.start_segment(header)?;
        } else if let ExportState::Unopened(output) =
            std::mem::replace(&mut self.state, ExportState::Finished)
        {
            let writer = Writer::new(output, header)?;
            self.state = ExportState::Open(Box::new(match self.options.checkpoint_interval {
                Some(interval) => writer.checkpoint_every(interval),
                None => writer,
            }));
        }
        self.writer()
    }

    fn writer(&mut self) -> io::Result<&mut Writer<W>> {
        match &mut self.state {
            ExportState::Open(writer) => Ok(writer),
            _ => Err(no_segment()),
        }
    }

    /// Microseconds since the previous sample: by the clock, otherwise as stored by the source. The first sample of a source
    /// with differences counts from the clock's origin, as there: those before it may have been left out.
    fn delta_us(&self, sample: &Sample<'_>) -> Option<i64> {
        let origin_us = sample.delta_us.map(|_| 0);
        let last_us = self.last_time_us.or(origin_us);
        let since_last = time_us(sample).zip(last_us).and_then(|(now, last)| now.checked_sub(last));
        let delta = since_last.or(sample.delta_us);
        match self.options.timestamps {
            Timestamps::AsSource if sample.time_ns.is_none() => sample.delta_us,
            _ => Some(delta.unwrap_or(0)),
        }
    }

    fn write_metadata(&mut self, key: &[u8], value: &[u8]) -> io::Result<()> {
        self.writer()?.write_metadata(key, value)?;
        self.process.metadata(key, value);
        Ok(())
    }

    /// Writes the wall time from which the differences of the segment count: that of the sample before, else of the first.
    #[cold]
    fn write_clock(&mut self, at: Context<'_>, first: &Sample<'_>) -> io::Result<()> {
        let before_us = self.last_time_us.filter(|_| self.has_timestamps);
        let zero_us = before_us.or(time_us(first)).unwrap_or(0);
        let zero_ns = zero_us.checked_mul(1000);
        let unix_ns = at.segment.start_unix_ns.zip(zero_ns).and_then(|(start, zero)| start.checked_add(zero));
        if let Some(unix_ns) = unix_ns {
            self.writer()?.write_metadata(CLOCK_KEY, unix_ns.to_string().as_bytes())?;
            if self.has_timestamps {
                self.last_time_us = Some(zero_us);
            }
        }
        self.lacks_clock = false;
        Ok(())
    }

    /// The process that a sample has to name, because it differs from the segment's. The format cannot say that a
    /// sample has no process: for such a sample a segment without one begins.
    #[inline]
    fn own_process(&mut self, at: Context<'_>, sample: &Sample<'_>) -> io::Result<Option<i64>> {
        if sample.process.is_some() || at.segment.process == self.process.process() {
            return Ok(sample.process);
        }
        if at.segment.process.is_none() {
            self.open(self.header(at.segment))?;
        }
        Ok(at.segment.process)
    }

    fn count_losses(&mut self, at: Context<'_>, sample: &Sample<'_>) {
        let count = |lost: bool| if lost { sample.count } else { 0 };
        let has_fraction = self.has_timestamps && sample.time_ns.is_some_and(|ns| ns % 1000 != 0)
            || at.segment.period_ns.is_some_and(|ns| ns % 1000 != 0);
        let is_unknown = sample.time_ns.is_none() && sample.delta_us.is_none() && at.segment.has_times;
        self.losses.add("timestamps", count(!self.has_timestamps && sample.time_ns.is_some()));
        self.losses.add("unknown timestamps, written as 0,", count(self.has_timestamps && is_unknown));
        self.losses.add("fractions of microseconds", count(has_fraction));
        self.losses.add("thread ids", count(sample.thread.is_some()));
        self.losses.add("interpreter ids", count(sample.interpreter.is_some()));
        self.losses.add("thread states", count(sample.status.is_some()));
        self.losses.add("measured values", count(!sample.values.is_empty()));
        let repeats = sample.labels.is_some_and(|labels| repeats_a_key(at.tables.labels(labels)));
        self.losses.add("annotations with repeated keys", count(repeats));
    }
}

impl<W: Write> ProfileSink for Exporter<W> {
    fn sample(&mut self, at: Context<'_>, sample: &Sample<'_>) -> io::Result<ControlFlow<()>> {
        let pid = self.own_process(at, sample)?;
        if self.lacks_clock {
            self.write_clock(at, sample)?;
        }
        let delta_us = if self.has_timestamps { self.delta_us(sample) } else { None };
        let ExportState::Open(writer) = &mut self.state else { return Err(no_segment()) };
        let stack = self.columns.stack(sample.stack, at.tables, writer)?;
        let def = SampleDef { stack, count: sample.count, delta_us, pid, annotations: None };
        match sample.labels {
            None => writer.write_sample(&def)?,
            Some(labels) => write_annotated(writer, &def, labels, at.tables)?,
        }
        // The time of a rejected sample is not in the file: the next counts from the one before.
        if self.has_timestamps {
            self.last_time_us = time_us(sample).or(self.last_time_us);
        }
        self.count_losses(at, sample);
        Ok(ControlFlow::Continue(()))
    }

    fn segment(&mut self, at: Context<'_>) -> io::Result<()> {
        let header = self.header(at.segment);
        self.has_timestamps = header.has_timestamps;
        if at.segment.index == 0 {
            self.last_time_us = None;
        }
        self.open(header)?;
        for &(key, value) in &at.segment.metadata {
            self.write_metadata(at.tables.string(key), at.tables.string(value))?;
        }
        match at.segment.process {
            Some(pid) if !self.process.is_named() => {
                self.write_metadata(SegmentProcess::KEY, pid.to_string().as_bytes())
            }
            _ => Ok(()),
        }
    }

    fn metadata(&mut self, at: Context<'_>, key: StringId, value: StringId) -> io::Result<()> {
        self.write_metadata(at.tables.string(key), at.tables.string(value))
    }

    fn finish(&mut self, _tables: &Tables) -> io::Result<()> {
        self.complete().map(drop)
    }
}

impl<W: Write> Export for Exporter<W> {
    fn losses(&self) -> Losses {
        self.losses.clone()
    }
}

impl WriterIds {
    /// Clears the columns: a new segment defines everything again.
    fn forget(&mut self) {
        self.frames.clear();
        self.stacks.clear();
        self.empty_stack = None;
    }

    #[inline]
    fn stack<W: Write>(
        &mut self,
        stack: Option<StackId>,
        tables: &Tables,
        writer: &mut Writer<W>,
    ) -> io::Result<ids::StackId> {
        let known = match stack {
            None => self.empty_stack,
            Some(stack) => self.stacks.get(stack.index()).copied().flatten(),
        };
        known.map_or_else(|| self.new_stack(stack, tables, writer), Ok)
    }

    #[cold]
    fn new_stack<W: Write>(
        &mut self,
        stack: Option<StackId>,
        tables: &Tables,
        writer: &mut Writer<W>,
    ) -> io::Result<ids::StackId> {
        let mut frames = std::mem::take(&mut self.scratch);
        frames.clear();
        for frame in tables.frames_leaf_first(stack) {
            frames.push(self.frame(frame, tables, writer)?);
        }
        let id = writer.define_stack(&frames)?;
        self.scratch = frames;
        match stack {
            None => self.empty_stack = Some(id),
            Some(stack) => put(&mut self.stacks, stack.index(), id),
        }
        Ok(id)
    }

    fn frame<W: Write>(
        &mut self,
        frame: FrameId,
        tables: &Tables,
        writer: &mut Writer<W>,
    ) -> io::Result<ids::FrameId> {
        if let Some(Some(known)) = self.frames.get(frame.index()) {
            return Ok(*known);
        }
        let id = writer.define_frame(&frame_def(frame, tables))?;
        put(&mut self.frames, frame.index(), id);
        Ok(id)
    }
}

fn frame_def(frame: FrameId, tables: &Tables) -> FrameDef<'_> {
    let frame = tables.frame(frame);
    let function = tables.string(frame.function);
    if let Some(native) = frame.native {
        return FrameDef::Native {
            symbol: function,
            module: tables.string(native.module),
            // The format cannot represent an unknown offset.
            offset: native.offset.unwrap_or(0),
        };
    }
    let name = match frame.parts {
        None => FunctionName::split(function),
        Some(parts) => FunctionName {
            namespace: tables.string(parts.namespace),
            class: tables.string(parts.class),
            method: tables.string(parts.method),
        },
    };
    FrameDef::Php {
        name,
        file: frame.file.map_or(b"", |file| tables.string(file)),
        line: frame.line.unwrap_or(-1),
        opcode: frame.opcode.map(|opcode| tables.string(opcode)),
    }
}

fn write_annotated<W: Write>(
    writer: &mut Writer<W>,
    sample: &SampleDef<'_>,
    labels: LabelsId,
    tables: &Tables,
) -> io::Result<()> {
    let labels = tables.labels(labels);
    let values: Vec<_> = labels.iter().map(|label| value_text(label.value, tables)).collect();
    let pairs: Vec<_> =
        labels.iter().zip(&values).map(|(label, value)| (tables.string(label.key), &**value)).collect();
    writer.write_sample(&SampleDef { annotations: Some(&pairs), ..*sample })
}

/// Whether two labels share their key. The format keeps only the last of these.
fn repeats_a_key(labels: &[Label]) -> bool {
    if labels.len() < 2 {
        return false;
    }
    let mut keys: Vec<_> = labels.iter().map(|label| label.key).collect();
    keys.sort_unstable();
    keys.windows(2).any(|pair| pair[0] == pair[1])
}

/// A period in whole microseconds; 0 for an unknown one.
fn nearest_us(ns: u64) -> u32 {
    let nearest = (ns.saturating_add(500) / 1000).max(ns.min(1));
    u32::try_from(nearest).unwrap_or(u32::MAX)
}

fn time_us(sample: &Sample<'_>) -> Option<i64> {
    sample.time_ns.map(|ns| ns.div_euclid(1000))
}

#[cold]
fn no_segment() -> io::Error {
    io::Error::other("expected a segment before its samples")
}

/// The value of a label as an annotation's string: numbers are printed.
fn value_text(value: LabelValue, tables: &Tables) -> Cow<'_, [u8]> {
    match value {
        LabelValue::Text(text) => Cow::Borrowed(tables.string(text)),
        LabelValue::Number { value, .. } => Cow::Owned(value.to_string().into_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rbt::{Reader, Record};

    /// Writes a segment with samples at these times, after whatever was at `last_time_us`.
    fn segment(index: u64, times_us: &[i64], last_time_us: Option<i64>) -> (Vec<u8>, Option<i64>) {
        let options = ExportOptions { timestamps: Timestamps::Always, ..ExportOptions::default() };
        let mut exporter = Exporter::new(Vec::new(), options).continuing(last_time_us);
        let tables = Tables::default();
        let segment = Segment { index, has_times: true, ..Segment::default() };
        let at = Context { tables: &tables, segment: &segment };
        exporter.segment(at).unwrap();
        for time_us in times_us {
            let sample = Sample { count: 1, time_ns: Some(time_us * 1000), ..Sample::default() };
            let _ = exporter.sample(at, &sample).unwrap();
        }
        let last_time_us = exporter.last_time_us();
        (exporter.into_output().unwrap().unwrap(), last_time_us)
    }

    fn deltas_us(bytes: &[u8]) -> Vec<i64> {
        let (mut reader, mut deltas_us) = (Reader::new(bytes), Vec::new());
        while let Some(record) = reader.next_record().unwrap() {
            if let Record::Sample(sample) = record {
                deltas_us.extend(sample.delta_us);
            }
        }
        deltas_us
    }

    #[test]
    fn the_time_since_the_segment_before_is_in_the_first_difference() {
        let (first, last_time_us) = segment(0, &[7_000, 9_000], None);
        assert_eq!((deltas_us(&first), last_time_us), (vec![0, 2_000], Some(9_000)));
        let (second, _) = segment(1, &[209_000, 210_000], last_time_us);
        assert_eq!(deltas_us(&second), [200_000, 1_000]);
        // The first segment of a source counts from its own first sample.
        assert_eq!(deltas_us(&segment(0, &[209_000], last_time_us).0), [0]);
    }
}
