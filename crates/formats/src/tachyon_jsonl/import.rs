//! Imports sums of frames into the model.

use std::io::BufRead;
use std::ops::ControlFlow;

use borehole_model::{
    Context, Frame, FrameId, Mode, ProfileSink, Sample, Segment, StringId, TableFull, Tables,
};
use hashbrown::HashMap;
use serde_json::Value;

use super::NAME;
use super::read::{FrameEntry, MetaLine, RunEnd, RunLine, StringEntry, SumEntry, SumsLine, parse_line};
use crate::documents::whole::DocumentDamage;
use crate::lines::json::{self, JsonLineFault, JsonLineParser, LinesEnd};
use crate::{Error, ErrorKind, Limits, Position, ReadError, ReadOptions, Recovery, Warning};

/// The only version of the lines.
///
/// Source: CPython 3.15.2, `JsonlCollector`.
const VERSION: u64 = 0;

/// Reads sums of frames: each executing frame becomes a stack of that frame alone, with its number of samples.
///
/// Sums have no stacks, so the totals of frames are dropped, with a note. The first line becomes the segment's metadata.
/// Several consecutive runs become several segments. A run without its last line, or cut off in the middle of a line, ends
/// there with a warning.
///
/// # Errors
/// If the input cannot be read, a limit is reached, or the sink fails; and, unless damage is skipped, at the first invalid
/// line. Positions are lines.
pub fn import(
    input: impl BufRead,
    options: &ReadOptions,
    tables: &mut Tables,
    sink: &mut dyn ProfileSink,
) -> Result<Recovery, ReadError> {
    let mut importer = Importer {
        tables,
        sink,
        damage: DocumentDamage::new(options),
        limits: options.limits,
        held_bytes: 0,
        line: 0,
        run: None,
        above: 0,
    };
    let end = json::import(input, NAME, options, &mut importer)?;
    importer.damage.recovery.stopped = end == LinesEnd::Stopped;
    importer.finish()
}

/// The state of the current run.
#[derive(Default)]
struct RunState {
    segment: Segment,
    strings: HashMap<u64, StringId>,
    frames: HashMap<u64, FrameId>,
    /// The number of samples so far.
    samples: u64,
    has_ended: bool,
}

impl RunState {
    fn held_bytes(&self) -> usize {
        self.strings.allocation_size() + self.frames.allocation_size()
    }
}

struct Importer<'a> {
    tables: &'a mut Tables,
    sink: &'a mut dyn ProfileSink,
    damage: DocumentDamage,
    limits: Limits,
    /// The memory of the texts and frames so far, about: that of the tables, which have each of them once.
    held_bytes: usize,
    /// The number of the current line.
    line: u64,
    run: Option<RunState>,
    /// The number of frames whose total is larger than their self count.
    above: u64,
}

impl Importer<'_> {
    /// The size of a string or a frame in the tables without its text: columns and hash tables may be twice as large as what
    /// is in them.
    const ENTRY_BYTES: usize = 200;

    /// Fails at the current line, or with lenient options warns.
    fn odd(&mut self, message: impl Into<String>) -> Result<(), Error> {
        self.damage.meet(Error::malformed(NAME, Position::Line(self.line), message), 0)
    }

    fn begin(&mut self, meta: MetaLine) -> Result<(), ReadError> {
        self.leave_run();
        if meta.v != VERSION {
            let message = format!("unsupported version: expected {VERSION}, found {}", meta.v);
            let position = Position::Line(self.line);
            self.damage.meet(Error::new(ErrorKind::Unsupported, NAME, position, message), 0)?;
        }
        let mut metadata = Vec::new();
        for (key, value) in meta.rest.iter().filter(|(key, _)| *key != "type") {
            let value = text_of(value);
            self.hold(key.len() + value.len())?;
            let pair =
                (self.tables.intern_string(key.as_bytes())?, self.tables.intern_string(value.as_bytes())?);
            metadata.push(pair);
        }
        let segment = Segment {
            format: NAME,
            index: self.damage.recovery.segments,
            period_ns: meta.sample_interval_usec.and_then(|us| us.checked_mul(1000)).filter(|&ns| ns > 0),
            metadata,
            mode: meta.rest.get("mode").and_then(Value::as_str).and_then(Mode::named).unwrap_or_default(),
            ..Segment::default()
        };
        self.start(segment)
    }

    fn start(&mut self, segment: Segment) -> Result<(), ReadError> {
        self.sink.segment(Context { tables: self.tables, segment: &segment })?;
        self.damage.recovery.segments += 1;
        self.run = Some(RunState { segment, ..RunState::default() });
        Ok(())
    }

    /// The current run; begins one without a first line if that is missing.
    fn run(&mut self) -> Result<&mut RunState, ReadError> {
        if self.run.as_ref().is_none_or(|run| run.has_ended) {
            self.odd("expected a first line of type `meta`")?;
            let index = self.damage.recovery.segments;
            self.start(Segment { format: NAME, index, ..Segment::default() })?;
        }
        Ok(self.run.get_or_insert_default())
    }

    /// Checks that there is room for one more definition.
    fn hold(&mut self, bytes: usize) -> Result<(), Error> {
        let own = Self::ENTRY_BYTES.saturating_add(bytes.saturating_mul(2));
        self.held_bytes = self.held_bytes.saturating_add(own);
        let run = self.run.as_ref().map_or(0, RunState::held_bytes);
        let checked = self.limits.check(self.held_bytes.saturating_add(run));
        checked.map_err(|over| Error::memory(NAME, Position::Line(self.line), over))
    }

    fn strings(&mut self, entries: Vec<StringEntry>) -> Result<(), ReadError> {
        for StringEntry { str_id, value } in entries {
            self.hold(value.len())?;
            let string = self.tables.intern_string(value.as_bytes())?;
            self.run()?.strings.insert(str_id, string);
        }
        Ok(())
    }

    fn frames(&mut self, entries: Vec<FrameEntry>) -> Result<(), ReadError> {
        for entry in entries {
            self.hold(0)?;
            let file = self.string(entry.path_str_id)?;
            let Some(function) = self.string(entry.func_str_id)? else { continue };
            let frame = self.frame(&entry, file, function)?;
            self.run()?.frames.insert(entry.frame_id, frame);
        }
        Ok(())
    }

    /// The string of that number. An undefined one is damage.
    fn string(&mut self, id: u64) -> Result<Option<StringId>, ReadError> {
        let known = self.run()?.strings.get(&id).copied();
        if known.is_none() {
            self.odd(format!("undefined string: {id}"))?;
        }
        Ok(known)
    }

    fn frame(
        &mut self,
        entry: &FrameEntry,
        file: Option<StringId>,
        function: StringId,
    ) -> Result<FrameId, TableFull> {
        let column = |value: Option<i64>| value.and_then(|value| u32::try_from(value).ok());
        let is_nowhere = entry.line == Some(0) && entry.end_line.is_none() && entry.col.is_none();
        let opcode = entry.opcode.as_ref().map(|name| self.tables.intern_string(text_of(name).as_bytes()));
        self.tables.intern_frame(&Frame {
            file,
            line: entry.line.filter(|_| !is_nowhere),
            end_line: entry.end_line,
            column: column(entry.col),
            end_column: column(entry.end_col),
            opcode: opcode.transpose()?,
            ..Frame::named(function)
        })
    }

    fn sums(&mut self, sums: SumsLine) -> Result<ControlFlow<()>, ReadError> {
        let SumsLine { kind, scope, entries } = sums;
        self.run()?;
        if (&*kind, &*scope) != ("frame", "final") {
            self.odd(format!("expected final sums of frames, found {scope} sums of {kind}"))?;
            return Ok(ControlFlow::Continue(()));
        }
        for SumEntry { frame_id, self_samples, total_samples } in entries {
            self.above += u64::from(total_samples > self_samples);
            if self_samples > 0 && self.sample(frame_id, self_samples)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    fn sample(&mut self, frame_id: u64, count: u64) -> Result<ControlFlow<()>, ReadError> {
        let frame = match self.run()?.frames.get(&frame_id).copied() {
            Some(frame) => frame,
            None => self.lost_frame(frame_id)?,
        };
        let stack = self.tables.intern_stack(None, frame)?;
        let run = self.run.get_or_insert_default();
        run.samples = run.samples.saturating_add(count);
        self.damage.recovery.samples = self.damage.recovery.samples.saturating_add(count);
        let at = Context { tables: self.tables, segment: &run.segment };
        Ok(self.sink.sample(at, &Sample { stack: Some(stack), count, ..Sample::default() })?)
    }

    /// Creates an undefined frame, because its self count is still valid.
    fn lost_frame(&mut self, frame_id: u64) -> Result<FrameId, ReadError> {
        self.odd(format!("undefined frame: {frame_id}"))?;
        let function = self.tables.intern_string(format!("frame#{frame_id}").as_bytes())?;
        Ok(self.tables.intern_frame(&Frame::named(function))?)
    }

    fn end(&mut self, end: &RunEnd) -> Result<(), ReadError> {
        let run = self.run()?;
        run.has_ended = true;
        let (expected, found) = (end.samples_total, run.samples);
        if expected != found {
            self.odd(format!("expected {expected} samples, found {found}"))?;
        }
        Ok(())
    }

    /// Warns that a run has no last line.
    fn leave_run(&mut self) {
        if self.run.take().is_some_and(|run| !run.has_ended) {
            self.damage.recovery.warn(Warning::truncated("truncated: missing line of type `end`"));
        }
    }

    fn finish(mut self) -> Result<Recovery, ReadError> {
        if !self.damage.recovery.stopped {
            self.leave_run();
        }
        if self.above > 0 {
            let message =
                format!("totals of {} frames are dropped: sums of frames have no stacks", self.above);
            self.damage.recovery.note(Warning::new(message));
        }
        self.damage.finish(self.sink)
    }
}

impl JsonLineParser for Importer<'_> {
    fn line(&mut self, line: &[u8], number: u64) -> Result<ControlFlow<()>, JsonLineFault> {
        self.line = number;
        match parse_line(line).map_err(|error| JsonLineFault::parse(&error, line))? {
            RunLine::Meta(meta) => self.begin(meta)?,
            RunLine::Strings(strings) => self.strings(strings)?,
            RunLine::Frames(frames) => self.frames(frames)?,
            RunLine::Sums(sums) => return Ok(self.sums(sums)?),
            RunLine::End(end) => self.end(&end)?,
            RunLine::Other(name) => self.odd(format!("unknown line type: `{name}`"))?,
        }
        Ok(ControlFlow::Continue(()))
    }

    fn skipped(&mut self, warning: Warning) -> Result<(), ReadError> {
        self.damage.recovery.warn(warning);
        Ok(())
    }
}

/// Formats a value for metadata.
fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
