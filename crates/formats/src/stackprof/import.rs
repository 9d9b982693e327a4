//! Imports a document into the model.

use std::collections::HashMap;
use std::io::BufRead;
use std::marker::PhantomData;

use borehole_model::{
    Context, Frame, FrameId, Mode, ProfileSink, Recovery, Sample, Segment, StackId, TableFull, Tables,
    ValueType, Warning,
};

use super::NAME;
use super::read::{C_FILE, RawRun, RubyFrame, StackprofDocument, VALUE_BYTES, next_run};
use crate::documents::json::{self, JsonMemory};
use crate::documents::whole::DocumentDamage;
use crate::{Error, Position, ReadError, ReadOptions};

/// Reads a profile of stackprof. Of the modes `wall` and `cpu`, the interval is the period; of `object`, each sample stands for as
/// many objects, which are its value `alloc_objects/count`.
///
/// A profile that was taken without `raw: true` has no stacks: it has the samples of each method, and a note says so. Lines of
/// frames are those of the samples where the release writes them, otherwise those at which methods begin.
///
/// # Errors
/// If the input is not such a profile or exceeds the limit, or the sink fails. Positions are lines.
///
/// # Examples
///
/// ```
/// use borehole_formats::{ReadOptions, stackprof};
/// use borehole_model::{Count, Tables};
///
/// let text = br#"{"mode":"cpu","interval":1000,"samples":3,"gc_samples":0,"missed_samples":0,
///     "frames":{"9":{"name":"Shop#order","file":"/shop.rb","line":3}},"raw":[1,9,3]}"#;
/// let mut count = Count::default();
/// let recovery = stackprof::import(&text[..], &ReadOptions::default(), &mut Tables::default(), &mut count)?;
/// assert_eq!(recovery.samples, 3);
/// # Ok::<(), borehole_formats::ReadError>(())
/// ```
pub fn import(
    input: impl BufRead,
    options: &ReadOptions,
    tables: &mut Tables,
    sink: &mut dyn ProfileSink,
) -> Result<Recovery, ReadError> {
    let mut damage = DocumentDamage::new(options);
    let memory = JsonMemory::of_texts(options.limits, VALUE_BYTES);
    match json::parse(NAME, input, &memory, PhantomData::<StackprofDocument>) {
        Ok(document) => {
            let segment = segment(&document);
            sink.segment(Context { tables, segment: &segment })?;
            damage.recovery.segments += 1;
            note(&document, &mut damage.recovery);
            let mut output = RubySamples {
                interval: document.interval,
                segment: &segment,
                tables,
                sink,
                damage: &mut damage,
            };
            if document.raw.is_empty() {
                output.deliver_methods(&document.frames)?;
            } else {
                output.deliver_raw(&document)?;
            }
        }
        Err(error) => damage.meet(error, 0)?,
    }
    damage.finish(sink)
}

fn segment(document: &StackprofDocument) -> Segment {
    let is_timed = matches!(&*document.mode, "wall" | "cpu");
    let is_of_objects = document.mode == "object";
    let has_times = has_times(document);
    let value_types = if is_of_objects { vec![ValueType::new("alloc_objects", "count")] } else { Vec::new() };
    Segment {
        format: NAME,
        mode: if document.mode == "cpu" { Mode::Cpu } else { Mode::Wall },
        period_ns: document.interval.checked_mul(1000).filter(|&period_ns| is_timed && period_ns > 0),
        value_types,
        has_times,
        is_ordered: !document.raw.is_empty(),
        ..Segment::default()
    }
}

/// Whether each sample has a time.
fn has_times(document: &StackprofDocument) -> bool {
    document.raw_sample_timestamps.len() as u64 == document.samples && !document.raw.is_empty()
}

fn note(document: &StackprofDocument, recovery: &mut Recovery) {
    if document.raw.is_empty() {
        let message = "no stacks, only methods: take the profile with raw: true to have stacks";
        recovery.note(Warning::new(message));
    }
    for (count, what) in [
        (document.missed_samples, "samples were missed by the profiler"),
        (document.gc_samples, "samples were taken in the garbage collector"),
    ] {
        if count > 0 {
            recovery.note(Warning::new(format!("{count} {what}")));
        }
    }
}

/// Passes the samples of a document to a sink.
struct RubySamples<'a> {
    interval: u64,
    segment: &'a Segment,
    tables: &'a mut Tables,
    sink: &'a mut dyn ProfileSink,
    damage: &'a mut DocumentDamage,
}

impl RubySamples<'_> {
    /// Passes the samples of each method, in the order of their names.
    fn deliver_methods(&mut self, frames: &HashMap<String, RubyFrame>) -> Result<(), ReadError> {
        let mut rows: Vec<_> = frames.iter().filter(|(_, frame)| frame.samples > 0).collect();
        rows.sort_by_key(|(address, frame)| (&frame.name, *address));
        for (_, frame) in rows {
            let frame_id = intern(frame, None, self.tables)?;
            let stack = self.tables.intern_stack(None, frame_id)?;
            self.give(Some(stack), frame.samples, None)?;
        }
        Ok(())
    }

    fn deliver_raw(&mut self, document: &StackprofDocument) -> Result<(), ReadError> {
        let mut frames = StackFrames::of(document);
        let has_times = has_times(document);
        let mut times = document.raw_sample_timestamps.iter();
        let (mut raw, mut lines) = (&document.raw[..], &document.raw_lines[..]);
        while let Some(run) = next_run(&mut raw, &mut lines) {
            let Some(stack) = frames.stack(run, self.tables)? else {
                let message = "unknown frame in a stack";
                self.damage.meet(Error::malformed(NAME, Position::Whole, message), 0)?;
                continue;
            };
            if !has_times {
                self.give(stack, run.count, None)?;
                continue;
            }
            for _ in 0..run.count {
                let Some(&time_us) = times.next() else { break };
                let time_ns = i64::try_from(time_us.saturating_mul(1000)).unwrap_or(i64::MAX);
                self.give(stack, 1, Some(time_ns))?;
                if self.damage.recovery.stopped {
                    return Ok(());
                }
            }
        }
        if !raw.is_empty() {
            let message = "truncated: the last stack does not end";
            self.damage.meet(Error::truncated(NAME, Position::Whole, message), 0)?;
        }
        Ok(())
    }

    fn give(&mut self, stack: Option<StackId>, count: u64, time_ns: Option<i64>) -> Result<(), ReadError> {
        if self.damage.recovery.stopped {
            return Ok(());
        }
        // Each sample of objects stands for as many as lie between two.
        let value = i64::try_from(self.interval.saturating_mul(count)).unwrap_or(i64::MAX);
        let values = if self.segment.value_types.is_empty() { &[][..] } else { &[value] };
        let sample = Sample { stack, count, time_ns, values, ..Sample::default() };
        let at = Context { tables: self.tables, segment: self.segment };
        let recovery = &mut self.damage.recovery;
        recovery.samples = recovery.samples.saturating_add(count);
        recovery.stopped = self.sink.sample(at, &sample)?.is_break();
        Ok(())
    }
}

/// The frames of a document, interned when a stack has them.
struct StackFrames<'a> {
    by_address: HashMap<u64, &'a RubyFrame>,
    /// By address, and by line where the release writes lines.
    interned: HashMap<(u64, Option<u64>), FrameId>,
}

impl<'a> StackFrames<'a> {
    fn of(document: &'a StackprofDocument) -> Self {
        let rows = document.frames.iter();
        let by_address = rows.filter_map(|(address, frame)| Some((address.parse().ok()?, frame)));
        Self { by_address: by_address.collect(), interned: HashMap::new() }
    }

    /// The stack of a run; `None` if a frame is not in the table.
    fn stack(&mut self, run: RawRun<'_>, tables: &mut Tables) -> Result<Option<Option<StackId>>, TableFull> {
        let mut stack = None;
        for (index, &address) in run.frames_root_first.iter().enumerate() {
            let line = run.lines.get(index).copied();
            let frame = match self.interned.get(&(address, line)) {
                Some(&frame) => frame,
                None => {
                    let Some(frame) = self.by_address.get(&address) else { return Ok(None) };
                    let frame = intern(frame, line, tables)?;
                    self.interned.insert((address, line), frame);
                    frame
                }
            };
            stack = Some(tables.intern_stack(stack, frame)?);
        }
        Ok(Some(stack))
    }
}

fn intern(frame: &RubyFrame, line: Option<u64>, tables: &mut Tables) -> Result<FrameId, TableFull> {
    let function = tables.intern_string(frame.name.as_bytes())?;
    let file = frame.file.as_deref().filter(|&file| file != C_FILE && !file.is_empty());
    let file = file.map(|file| tables.intern_string(file.as_bytes())).transpose()?;
    let line = line.and_then(|line| i64::try_from(line).ok()).or(frame.line).filter(|&line| line > 0);
    tables.intern_frame(&Frame { file, line, ..Frame::named(function) })
}
