//! Imports a document into the model.

use std::io::BufRead;
use std::marker::PhantomData;

use borehole_model::{
    Context, Frame, FrameId, NativeFrame, ProfileSink, Recovery, Sample, Segment, StackId, StringId,
    TableFull, Tables, ValueType,
};

use super::NAME;
use super::read::{FrameKind, ScaleneDocument, ScaleneFrame, StackRun, VALUE_BYTES, parse_frame};
use crate::documents::json::{self, JsonMemory};
use crate::documents::whole::DocumentDamage;
use crate::{Error, ErrorKind, Position, ReadError, ReadOptions};

/// Reads a profile of scalene: samples of stacks of Python and native code with time and thread, and stacks of allocations with the
/// value `alloc/bytes`. Where a profile has stacks of Python code only, their samples have no times.
///
/// # Errors
/// If the input is not such a profile, has no stacks, or exceeds the limit, or the sink fails. Positions are lines.
///
/// # Examples
///
/// ```
/// use borehole_formats::{ReadOptions, scalene};
/// use borehole_model::{Count, Tables};
///
/// let text = br#"{"alloc_samples":0,"elapsed_time_sec":1.5,
///     "stacks":[[["/shop.py <module>:24;","/shop.py order:8;"],{"count":3,"python_time":0.5}]]}"#;
/// let mut count = Count::default();
/// let recovery = scalene::import(&text[..], &ReadOptions::default(), &mut Tables::default(), &mut count)?;
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
    match json::parse(NAME, input, &memory, PhantomData::<ScaleneDocument>) {
        Ok(document) => ScaleneReading { document: &document, tables, sink, damage: &mut damage }.run()?,
        Err(error) => damage.meet(error, 0)?,
    }
    damage.finish(sink)
}

/// Passes the samples of a document to a sink.
struct ScaleneReading<'a> {
    document: &'a ScaleneDocument,
    tables: &'a mut Tables,
    sink: &'a mut dyn ProfileSink,
    damage: &'a mut DocumentDamage,
}

impl ScaleneReading<'_> {
    fn run(mut self) -> Result<(), ReadError> {
        let document = self.document;
        let has_stacks = !(document.combined_stacks.is_empty() && document.stacks.is_empty());
        if !has_stacks && document.memory_stacks.is_empty() {
            let message =
                "no stacks, only sums by line: run scalene with --stacks, or see them with scalene view";
            let error = Error::new(ErrorKind::Unsupported, NAME, Position::Whole, message);
            return Ok(self.damage.meet(error, 0)?);
        }
        if has_stacks {
            let has_times = !document.combined_stacks_timeline.is_empty();
            let segment = self.begin(Segment { has_times, ..Segment::default() })?;
            if document.combined_stacks.is_empty() {
                self.python_stacks(&segment)?;
            } else {
                self.combined_stacks(&segment)?;
            }
        }
        if !document.memory_stacks.is_empty() && !self.damage.recovery.stopped {
            let value_types = vec![ValueType::new("alloc", "bytes")];
            let segment = self.begin(Segment { value_types, is_uncounted: true, ..Segment::default() })?;
            self.memory_stacks(&segment)?;
        }
        Ok(())
    }

    /// Begins a segment, with what all have.
    fn begin(&mut self, segment: Segment) -> Result<Segment, ReadError> {
        let mut metadata = Vec::new();
        if let Some(program) = self.document.program.as_deref().filter(|program| !program.is_empty()) {
            metadata.push((
                self.tables.intern_string(b"program")?,
                self.tables.intern_string(program.as_bytes())?,
            ));
        }
        let segment = Segment { format: NAME, index: self.damage.recovery.segments, metadata, ..segment };
        self.sink.segment(Context { tables: self.tables, segment: &segment })?;
        self.damage.recovery.segments += 1;
        Ok(segment)
    }

    /// The samples in the order of time, then those that the timeline lacks.
    fn combined_stacks(&mut self, segment: &Segment) -> Result<(), ReadError> {
        let mut stacks = Vec::new();
        for (frames, samples) in &self.document.combined_stacks {
            stacks.push((self.stack(frames)?, *samples));
        }
        for run in &self.document.combined_stacks_timeline {
            let &StackRun { t_sec, stack_index, count, thread_id } = run;
            let Some((stack, left)) = stacks.get_mut(stack_index) else {
                let message = format!("unknown stack {stack_index} in combined_stacks_timeline");
                self.damage.meet(Error::malformed(NAME, Position::Whole, message), 0)?;
                continue;
            };
            *left = left.saturating_sub(count);
            let time_ns = Some(nanoseconds(t_sec));
            let sample = Sample { stack: *stack, count, time_ns, thread: thread_id, ..Sample::default() };
            self.give(segment, &sample)?;
        }
        for (stack, count) in stacks {
            self.give(segment, &Sample { stack, count, ..Sample::default() })?;
        }
        Ok(())
    }

    fn python_stacks(&mut self, segment: &Segment) -> Result<(), ReadError> {
        for (frames, sums) in &self.document.stacks {
            let mut stack = None;
            for text in frames {
                let (file, function, line) = parse_frame(text);
                let frame = python_frame(function, file, line, self.tables)?;
                stack = Some(self.tables.intern_stack(stack, frame)?);
            }
            self.give(segment, &Sample { stack, count: sums.samples(), ..Sample::default() })?;
        }
        Ok(())
    }

    fn memory_stacks(&mut self, segment: &Segment) -> Result<(), ReadError> {
        for (frames, mebibytes) in &self.document.memory_stacks {
            let stack = self.stack(frames)?;
            let values = &[bytes(*mebibytes)];
            self.give(segment, &Sample { stack, count: 1, values, ..Sample::default() })?;
        }
        Ok(())
    }

    fn stack(&mut self, frames: &[ScaleneFrame]) -> Result<Option<StackId>, TableFull> {
        let mut stack = None;
        for frame in frames {
            let frame = intern(frame, self.tables)?;
            stack = Some(self.tables.intern_stack(stack, frame)?);
        }
        Ok(stack)
    }

    fn give(&mut self, segment: &Segment, sample: &Sample<'_>) -> Result<(), ReadError> {
        let recovery = &mut self.damage.recovery;
        if recovery.stopped || sample.count == 0 {
            return Ok(());
        }
        recovery.samples = recovery.samples.saturating_add(sample.count);
        recovery.stopped = self.sink.sample(Context { tables: self.tables, segment }, sample)?.is_break();
        Ok(())
    }
}

fn intern(frame: &ScaleneFrame, tables: &mut Tables) -> Result<FrameId, TableFull> {
    let ScaleneFrame { display_name, filename_or_module, .. } = frame;
    if frame.kind != FrameKind::Native {
        return python_frame(display_name, filename_or_module, frame.line, tables);
    }
    let function = match (&**display_name, frame.ip) {
        ("", Some(ip)) => tables.intern_string(format!("{ip:#x}").as_bytes())?,
        (name, _) => tables.intern_string(name.as_bytes())?,
    };
    let module = tables.intern_string(filename_or_module.as_bytes())?;
    let offset = frame.offset.filter(|_| !display_name.is_empty());
    let native =
        Some(NativeFrame { module, offset, file_offset: None }).filter(|_| !filename_or_module.is_empty());
    tables.intern_frame(&Frame { native, ..Frame::named(function) })
}

fn python_frame(
    function: &str,
    file: &str,
    line: Option<i64>,
    tables: &mut Tables,
) -> Result<FrameId, TableFull> {
    let function: StringId = tables.intern_string(function.as_bytes())?;
    let file = match file {
        "" => None,
        file => Some(tables.intern_string(file.as_bytes())?),
    };
    tables.intern_frame(&Frame { file, line: line.filter(|&line| line > 0), ..Frame::named(function) })
}

/// Converts seconds. What is too large becomes the largest.
#[expect(clippy::cast_possible_truncation, reason = "what is too large becomes the largest")]
fn nanoseconds(seconds: f64) -> i64 {
    (seconds * 1e9).round() as i64
}

/// Converts units of 1 MiB. What is too large becomes the largest.
#[expect(clippy::cast_possible_truncation, reason = "what is too large becomes the largest")]
fn bytes(mebibytes: f64) -> i64 {
    (mebibytes * f64::from(1 << 20)).round() as i64
}
