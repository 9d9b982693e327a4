//! Imports lines into the model.

use std::io::{self, BufRead};
use std::ops::ControlFlow;

use borehole_model::{
    Context, Event, Frame, FrameId, Label, LabelValue, LabelsId, LaneId, Measure, Mode, NameParts,
    NativeFrame, ProfileSink, Recovery, Sample, Segment, StackId, Status, StringId, TableFull, Tables,
    Thread, Value, ValueType, Warning,
};
use hashbrown::HashMap;

use super::NAME;
use super::event::{intern_shape, values};
use super::layout::{self, SCHEMA_VERSION};
use super::read::{
    DefaultValue, EndLine, FileLine, FrameObject, LabelObject, Line, MetadataLine, OtherValue, SampleLine,
    SegmentLine, StackLine, Text, ThreadLine, WarningObject, parse_line,
};
use super::value::EventLine;
use crate::detect::Format;
use crate::text::Lines;
use crate::{Error, ErrorKind, Position, ReadError, ReadOptions};

/// Reads lines into `tables` and `sink`.
///
/// Unknown types and keys are ignored. Several concatenated outputs are one input. An input without its last line, or
/// cut off in the middle of one, ends there with a warning.
///
/// # Errors
/// If the input cannot be read, a line exceeds the limit, or the sink fails; and, unless damage is skipped, at the
/// first invalid line.
pub fn import(
    input: impl BufRead,
    options: &ReadOptions,
    tables: &mut Tables,
    sink: &mut dyn ProfileSink,
) -> Result<Recovery, ReadError> {
    let mut lines = Lines::new(input, NAME, &options.limits);
    let mut importer = Importer::new(tables, sink);
    let mut rejected = None;
    loop {
        let line = lines.next_line()?;
        if let Some(rejected) = rejected.take() {
            importer.reject(rejected, line.is_none(), options)?;
        }
        let Some(line) = line else { break };
        let length = line.len() as u64;
        match importer.line(line) {
            Ok(ControlFlow::Continue(())) => {}
            Ok(ControlFlow::Break(())) => return Ok(importer.stop()),
            Err(Failure::Sink(error)) => return Err(error),
            Err(Failure::Line(why)) => {
                rejected = Some(Rejected { why, number: lines.number(), offset: lines.offset(), length });
            }
        }
    }
    importer.end_of_input(lines.offset())?;
    importer.note_stacks();
    Ok(importer.recovery)
}

/// A rejected line. It is handled differently if it is the last one.
struct Rejected {
    why: BadLine,
    number: u64,
    offset: u64,
    length: u64,
}

/// The reason why a line was rejected.
enum Failure {
    Line(BadLine),
    Sink(ReadError),
}

struct BadLine {
    kind: ErrorKind,
    message: String,
    /// Whether the line may be the beginning of a valid one.
    is_cut: bool,
}

impl Failure {
    fn malformed(message: impl Into<String>) -> Self {
        Self::Line(BadLine { kind: ErrorKind::Malformed, message: message.into(), is_cut: false })
    }

    /// The parser's error in `line`, without the line number 1 that it gives to every line.
    fn parse(error: &serde_json::Error, line: &[u8]) -> Self {
        let text = error.to_string();
        let what = text.split(" at line 1 ").next().unwrap_or_default();
        let message = format!("invalid line: {what} at column {}", error.column());
        // The parser takes a sign or a point at the end for a bad number, not for a number that is cut off.
        let number_is_cut =
            matches!(line.last(), Some(b'-' | b'+' | b'.' | b'e')) && what == "invalid number";
        let is_cut = error.is_eof() || number_is_cut;
        Self::Line(BadLine { kind: ErrorKind::Malformed, message, is_cut })
    }
}

impl From<ReadError> for Failure {
    fn from(error: ReadError) -> Self {
        Self::Sink(error)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Sink(error.into())
    }
}

impl From<TableFull> for Failure {
    fn from(full: TableFull) -> Self {
        Self::Sink(full.into())
    }
}

/// The reader's position between the first line of an output and its last.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Before the first line.
    Start,
    /// After a line of type `file`, or without one.
    Inside,
    /// After a line of type `end`.
    Ended,
}

struct Importer<'a> {
    tables: &'a mut Tables,
    sink: &'a mut dyn ProfileSink,
    stage: Stage,
    segment: Segment,
    /// Whether the sink has received `segment`.
    segment_begun: bool,
    /// The format as printed, which may be unknown to this program.
    format: String,
    stacks: HashMap<u64, Option<StackId>>,
    recovery: Recovery,
    /// The number of samples before the current output, if several are concatenated.
    samples_before: u64,
    /// The number of events before the current output.
    events_before: u64,
    events_with_stacks: u64,
    frames: Vec<FrameId>,
    labels: Vec<Label>,
}

impl<'a> Importer<'a> {
    fn new(tables: &'a mut Tables, sink: &'a mut dyn ProfileSink) -> Self {
        Self {
            tables,
            sink,
            stage: Stage::Start,
            segment: Segment { format: NAME, ..Segment::default() },
            segment_begun: false,
            format: String::new(),
            stacks: HashMap::new(),
            recovery: Recovery::default(),
            samples_before: 0,
            events_before: 0,
            events_with_stacks: 0,
            frames: Vec::new(),
            labels: Vec::new(),
        }
    }

    fn line(&mut self, line: &[u8]) -> Result<ControlFlow<()>, Failure> {
        if line.iter().all(u8::is_ascii_whitespace) {
            return Ok(ControlFlow::Continue(()));
        }
        match parse_line(line).map_err(|error| Failure::parse(&error, line))? {
            Line::Sample(line) => return self.sample(&line),
            Line::Event(line) => return self.event(&line),
            Line::Stack(line) => self.stack(&line)?,
            Line::Segment(line) => self.segment(&line)?,
            Line::Metadata(line) => self.metadata(&line)?,
            Line::Thread(line) => self.thread(&line)?,
            Line::Input(line) => self.sink.source(&line.name)?,
            Line::File(line) => self.file(&line)?,
            Line::End(line) => self.end(line)?,
            Line::Other => {}
        }
        Ok(ControlFlow::Continue(()))
    }

    fn file(&mut self, line: &FileLine<'_>) -> Result<(), Failure> {
        if line.schema_version > SCHEMA_VERSION {
            let found = line.schema_version;
            let message = format!("unsupported schema_version: expected {SCHEMA_VERSION}, found {found}");
            return Err(Failure::Line(BadLine { kind: ErrorKind::Unsupported, message, is_cut: false }));
        }
        if self.stage == Stage::Inside {
            self.warn_of_missing_end(None)?;
        }
        self.stage = Stage::Inside;
        self.samples_before = self.recovery.samples;
        self.events_before = self.recovery.events;
        self.stacks.clear();
        self.set_format(line.format.as_deref());
        self.segment = Segment { format: self.segment.format, ..Segment::default() };
        self.segment_begun = false;
        Ok(())
    }

    fn segment(&mut self, line: &SegmentLine<'_>) -> Result<(), Failure> {
        let micros = line.period_us.map(|micros| micros.checked_mul(1000).ok_or(micros)).transpose();
        let micros = micros
            .map_err(|micros| Failure::malformed(format!("period_us too large: {micros} microseconds")))?;
        self.set_format(line.format.as_deref());
        let metadata = line.metadata.iter().map(|(key, value)| {
            Ok((self.tables.intern_string(&key.0)?, self.tables.intern_string(&value.0)?))
        });
        self.segment = Segment {
            format: self.segment.format,
            index: line.index,
            offset: line.offset,
            period_ns: line.period_ns.or(micros),
            has_times: line.has_times,
            is_ordered: line.is_ordered,
            start_unix_ns: line.start_unix_ns,
            began_ns: line.began_ns,
            depth_limit: line.depth_limit,
            process: process(line.process.as_deref())?.or(line.pid),
            metadata: metadata.collect::<Result<_, ReadError>>()?,
            mode: line.mode.as_deref().and_then(Mode::named).unwrap_or_default(),
            value_types: line.value_types.iter().map(value_type).collect(),
            default_measure: line.default_value.map(measure),
            is_uncounted: line.is_uncounted,
        };
        self.begin_segment()
    }

    fn set_format(&mut self, format: Option<&str>) {
        self.format = format.unwrap_or_default().to_owned();
        let known = Format::ALL.into_iter().map(Format::name).find(|name| Some(*name) == format);
        self.segment.format = known.unwrap_or(NAME);
    }

    fn begin_segment(&mut self) -> Result<(), Failure> {
        self.segment_begun = true;
        self.recovery.segments += 1;
        self.inside();
        Ok(self.sink.segment(Context { tables: self.tables, segment: &self.segment })?)
    }

    /// Ensures a segment for lines after the first line but before a segment.
    fn ensure_segment(&mut self) -> Result<(), Failure> {
        if self.segment_begun { Ok(()) } else { self.begin_segment() }
    }

    const fn inside(&mut self) {
        self.stage = Stage::Inside;
    }

    fn metadata(&mut self, line: &MetadataLine<'_>) -> Result<(), Failure> {
        self.ensure_segment()?;
        let key = self.tables.intern_string(&line.key.0)?;
        let value = self.tables.intern_string(&line.value.0)?;
        Ok(self.sink.metadata(Context { tables: self.tables, segment: &self.segment }, key, value)?)
    }

    fn thread(&mut self, line: &ThreadLine<'_>) -> Result<(), Failure> {
        self.ensure_segment()?;
        let name = self.tables.intern_string(&line.name.0)?;
        let number = thread(line.thread.as_deref())?.or(line.tid);
        let number = number.ok_or_else(|| Failure::malformed("missing field `tid`".to_owned()))?;
        let thread = Thread { process: process(line.process.as_deref())?.or(line.pid), number };
        Ok(self.sink.thread(Context { tables: self.tables, segment: &self.segment }, thread, name)?)
    }

    fn stack(&mut self, line: &StackLine<'_>) -> Result<(), Failure> {
        self.inside();
        let stack = self.intern_frames(&line.frames)?;
        self.stacks.insert(line.id, stack);
        Ok(())
    }

    fn intern_frames(&mut self, frames: &[FrameObject<'_>]) -> Result<Option<StackId>, ReadError> {
        self.frames.clear();
        for frame in frames {
            let frame = intern_frame(self.tables, &self.format, frame)?;
            self.frames.push(frame);
        }
        Ok(self.tables.intern_stack_leaf_first(&self.frames)?)
    }

    fn sample(&mut self, line: &SampleLine<'_>) -> Result<ControlFlow<()>, Failure> {
        self.ensure_segment()?;
        let stack = match (&line.frames, line.stack) {
            (Some(frames), _) => self.intern_frames(frames)?,
            (None, Some(id)) => *self.stacks.get(&id).ok_or_else(|| {
                Failure::malformed(format!("expected a stack of an earlier line, found stack {id}"))
            })?,
            (None, None) => None,
        };
        let sample = Sample {
            stack,
            count: line.count,
            time_ns: line.time_ns,
            delta_us: line.delta_us,
            process: process(line.process.as_deref())?.or(line.pid.flatten()),
            thread: thread(line.thread.as_deref())?.or(line.tid),
            interpreter: line.interpreter,
            status: line.status.as_deref().map(status).transpose()?,
            labels: line.labels.as_deref().map(|labels| self.intern_labels(labels)).transpose()?,
            values: &line.values,
        };
        // The segment's process is another sample's: it is unknown while this sample is delivered.
        let process = self.segment.process;
        self.segment.process = process.filter(|_| line.pid != Some(None));
        let flow = self.sink.sample(Context { tables: self.tables, segment: &self.segment }, &sample);
        self.segment.process = process;
        let flow = flow?;
        self.recovery.samples = self.recovery.samples.saturating_add(line.count);
        Ok(flow)
    }

    fn event(&mut self, line: &EventLine<'_>) -> Result<ControlFlow<()>, Failure> {
        self.ensure_segment()?;
        let shape = intern_shape(self.tables, line)?;
        let values = values(line);
        let event = Event { shape, type_id: line.type_id, time_ns: line.time_ns, values: &values };
        let flow = self.sink.event(Context { tables: self.tables, segment: &self.segment }, &event)?;
        self.recovery.events += 1;
        let has_stack = values.iter().any(|value| matches!(value, Value::Stack(_)));
        self.events_with_stacks += u64::from(has_stack);
        Ok(flow)
    }

    fn intern_labels(&mut self, labels: &[(Text<'_>, LabelObject<'_>)]) -> Result<LabelsId, ReadError> {
        self.labels.clear();
        for (key, value) in labels {
            let key = self.tables.intern_string(&key.0)?;
            let value = intern_label_value(self.tables, value)?;
            self.labels.push(Label { key, value });
        }
        Ok(self.tables.intern_labels(&self.labels)?)
    }

    /// Takes the warnings of the input that the lines were made from.
    fn end(&mut self, line: EndLine<'_>) -> Result<(), Failure> {
        self.stage = Stage::Ended;
        let mut named = 0_u64;
        for warning in line.warnings {
            named = named.saturating_add(warning.lost_bytes);
            let WarningObject { offset, message, lost_bytes, saved_samples } = warning;
            self.pass_on(Warning { offset, message: message.into_owned(), lost_bytes, saved_samples })?;
        }
        self.recovery.more_warnings = self.recovery.more_warnings.saturating_add(line.more_warnings);
        let unnamed = line.lost_bytes.saturating_sub(named);
        self.recovery.lost_bytes = self.recovery.lost_bytes.saturating_add(unnamed);
        let found = self.recovery.samples.saturating_sub(self.samples_before);
        self.compare("samples", line.samples, found)?;
        let found = self.recovery.events.saturating_sub(self.events_before);
        self.compare("events", line.events, found)
    }

    /// Compares the counts stated by an output with those read.
    fn compare(&mut self, what: &str, expected: Option<u64>, found: u64) -> Result<(), Failure> {
        match expected {
            Some(expected) if expected != found => {
                let message = format!("missing {what}: expected {expected}, found {found}");
                Ok(self.pass_on(Warning::new(message))?)
            }
            _ => Ok(()),
        }
    }

    fn end_of_input(&mut self, offset: u64) -> Result<(), ReadError> {
        if self.stage == Stage::Ended { Ok(()) } else { self.warn_of_missing_end(Some(offset)) }
    }

    fn warn_of_missing_end(&mut self, offset: Option<u64>) -> Result<(), ReadError> {
        let message = r#"truncated: expected a last line of type "end""#.to_owned();
        self.pass_on(Warning::new(message).at(offset))
    }

    /// Ends the import at an invalid line, or skips it: if the input was cut off in the middle of its last line, or if
    /// damage is skipped.
    fn reject(&mut self, line: Rejected, is_last: bool, options: &ReadOptions) -> Result<(), ReadError> {
        let Rejected { why, number, offset, length } = line;
        let message = if is_last && why.is_cut {
            self.stage = Stage::Ended;
            format!("truncated: line {number} is cut off")
        } else if options.is_lenient() {
            format!("{}, at line {number}", why.message)
        } else {
            return Err(Error::new(why.kind, NAME, Position::Line(number), why.message).into());
        };
        self.pass_on(Warning::new(message).at(offset).losing(length))
    }

    fn pass_on(&mut self, warning: Warning) -> Result<(), ReadError> {
        self.sink.warning(&warning)?;
        self.recovery.warn(warning);
        Ok(())
    }

    /// Notes that there are no samples: only the reader of traces makes them from events.
    fn note_stacks(&mut self) {
        if self.events_with_stacks > 0 && !self.sink.keeps_events() {
            let count = self.events_with_stacks;
            let message =
                format!("no samples are made of the call stacks of {count} events: only of those in trc");
            self.recovery.note(Warning::new(message));
        }
    }

    fn stop(mut self) -> Recovery {
        self.recovery.stopped = true;
        self.recovery
    }
}

const fn measure(shown: DefaultValue) -> Measure {
    match shown {
        DefaultValue::Value(column) => Measure::Value(column),
        DefaultValue::Other(OtherValue::Count) => Measure::Count,
        DefaultValue::Other(OtherValue::Time) => Measure::Time,
    }
}

fn process(text: Option<&str>) -> Result<Option<i64>, Failure> {
    text.map(|text| lane_id(text).map(LaneId::to_process)).transpose()
}

fn thread(text: Option<&str>) -> Result<Option<u64>, Failure> {
    text.map(|text| lane_id(text).map(LaneId::to_u64)).transpose()
}

fn lane_id(text: &str) -> Result<LaneId, Failure> {
    let wrong =
        || Failure::malformed(format!("expected a thread or a process, found \"{}\"", text.escape_debug()));
    LaneId::parse(text).ok_or_else(wrong)
}

fn value_type((kind, unit): &(String, String)) -> ValueType {
    ValueType { kind: kind.clone(), unit: unit.clone() }
}

fn intern_text(tables: &mut Tables, text: Option<&Text<'_>>) -> Result<Option<StringId>, ReadError> {
    Ok(text.map(|text| tables.intern_string(&text.0)).transpose()?)
}

fn intern_frame(tables: &mut Tables, format: &str, frame: &FrameObject<'_>) -> Result<FrameId, ReadError> {
    let module = frame.module.as_ref().map_or(b"".as_slice(), |module| &module.0);
    let native = match frame.native {
        true => Some(NativeFrame { module: tables.intern_string(module)?, offset: frame.offset }),
        false => None,
    };
    let frame = Frame {
        function: tables.intern_string(&frame.function.0)?,
        parts: intern_parts(tables, format, frame)?,
        file: intern_text(tables, frame.file.as_ref())?,
        line: frame.line,
        end_line: frame.end_line,
        column: frame.column,
        end_column: frame.end_column,
        opcode: intern_text(tables, frame.opcode.as_ref())?,
        native,
    };
    Ok(tables.intern_frame(&frame)?)
}

fn intern_parts(
    tables: &mut Tables,
    format: &str,
    frame: &FrameObject<'_>,
) -> Result<Option<NameParts>, ReadError> {
    let said = [&frame.namespace, &frame.class, &frame.method];
    let parts = if said.iter().any(|part| part.is_some()) {
        Some(said.map(|part| part.as_ref().map_or(b"".as_slice(), |part| &part.0)))
    } else if frame.parts == Some(false) {
        None
    } else {
        layout::parts_unsaid(format, frame.native, &frame.function.0)
    };
    let Some([namespace, class, method]) = parts else { return Ok(None) };
    Ok(Some(NameParts {
        namespace: tables.intern_string(namespace)?,
        class: tables.intern_string(class)?,
        method: tables.intern_string(method)?,
    }))
}

fn intern_label_value(tables: &mut Tables, value: &LabelObject<'_>) -> Result<LabelValue, ReadError> {
    Ok(match value {
        LabelObject::Text(text) => LabelValue::Text(tables.intern_string(&text.0)?),
        LabelObject::Number { value, unit } => {
            LabelValue::Number { value: *value, unit: intern_text(tables, unit.as_ref())? }
        }
    })
}

/// Parses the flags of a thread's state from their names.
fn status(flags: &[Text<'_>]) -> Result<Status, Failure> {
    let mut bits = 0;
    for flag in flags {
        let Status(bit) = Status::flag(&flag.0).ok_or_else(|| {
            let found = String::from_utf8_lossy(&flag.0);
            Failure::malformed(format!("expected a thread's state, found \"{}\"", found.escape_debug()))
        })?;
        bits |= bit;
    }
    Ok(Status(bits))
}
