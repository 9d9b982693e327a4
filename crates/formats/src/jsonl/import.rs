//! Imports lines into the model.

use std::io::BufRead;
use std::ops::ControlFlow;

use borehole_model::{
    Context, Event, Frame, FrameId, Label, LabelValue, LabelsId, LaneId, Measure, Mode, NameParts,
    NativeFrame, ProfileSink, Recovery, Sample, Segment, StackId, Status, StringId, Tables, Thread, Value,
    ValueType, Warning,
};
use hashbrown::HashMap;

use super::event::{EventLine, intern_shape, values};
use super::read::{
    DefaultValue, EndLine, FileLine, FrameObject, JsonLine, LabelObject, MetadataLine, OtherValue,
    SampleLine, SegmentLine, StackLine, TextBytes, ThreadLine, WarningObject, parse_line,
};
use super::{NAME, SCHEMA_VERSION, assumed_parts};
use crate::detect::Format;
use crate::lines::json::{self, JsonLineFault, JsonLineParser, LinesEnd};
use crate::{ErrorKind, ReadError, ReadOptions};

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
    let mut importer = Importer::new(tables, sink);
    let end = json::import(input, NAME, options, &mut importer)?;
    importer.recovery.stopped = end == LinesEnd::Stopped;
    if let LinesEnd::At(offset) = end
        && importer.stage != Stage::Ended
    {
        importer.warn_of_missing_end(Some(offset))?;
    }
    if end != LinesEnd::Stopped {
        importer.note_stacks();
    }
    Ok(importer.recovery)
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

    fn file(&mut self, line: &FileLine<'_>) -> Result<(), JsonLineFault> {
        if line.schema_version > SCHEMA_VERSION {
            let found = line.schema_version;
            let message = format!("unsupported schema_version: expected {SCHEMA_VERSION}, found {found}");
            return Err(JsonLineFault::Invalid { kind: ErrorKind::Unsupported, message, is_cut: false });
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

    fn segment(&mut self, line: &SegmentLine<'_>) -> Result<(), JsonLineFault> {
        let micros = line.period_us.map(|micros| micros.checked_mul(1000).ok_or(micros)).transpose();
        let micros = micros.map_err(|micros| {
            JsonLineFault::malformed(format!("period_us too large: {micros} microseconds"))
        })?;
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
        let known = Format::ALL.iter().copied().map(Format::name).find(|name| Some(*name) == format);
        self.segment.format = known.unwrap_or(NAME);
    }

    fn begin_segment(&mut self) -> Result<(), JsonLineFault> {
        self.segment_begun = true;
        self.recovery.segments += 1;
        self.inside();
        Ok(self.sink.segment(Context { tables: self.tables, segment: &self.segment })?)
    }

    /// Ensures a segment for lines after the first line but before a segment.
    fn ensure_segment(&mut self) -> Result<(), JsonLineFault> {
        if self.segment_begun { Ok(()) } else { self.begin_segment() }
    }

    const fn inside(&mut self) {
        self.stage = Stage::Inside;
    }

    fn metadata(&mut self, line: &MetadataLine<'_>) -> Result<(), JsonLineFault> {
        self.ensure_segment()?;
        let key = self.tables.intern_string(&line.key.0)?;
        let value = self.tables.intern_string(&line.value.0)?;
        Ok(self.sink.metadata(Context { tables: self.tables, segment: &self.segment }, key, value)?)
    }

    fn thread(&mut self, line: &ThreadLine<'_>) -> Result<(), JsonLineFault> {
        self.ensure_segment()?;
        let name = self.tables.intern_string(&line.name.0)?;
        let number = thread(line.thread.as_deref())?.or(line.tid);
        let number = number.ok_or_else(|| JsonLineFault::malformed("missing field `tid`".to_owned()))?;
        let thread = Thread { process: process(line.process.as_deref())?.or(line.pid), number };
        Ok(self.sink.thread(Context { tables: self.tables, segment: &self.segment }, thread, name)?)
    }

    fn stack(&mut self, line: &StackLine<'_>) -> Result<(), JsonLineFault> {
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

    fn sample(&mut self, line: &SampleLine<'_>) -> Result<ControlFlow<()>, JsonLineFault> {
        self.ensure_segment()?;
        let stack = match (&line.frames, line.stack) {
            (Some(frames), _) => self.intern_frames(frames)?,
            (None, Some(id)) => *self.stacks.get(&id).ok_or_else(|| {
                JsonLineFault::malformed(format!(
                    "unknown stack: expected the id of an earlier line, found {id}"
                ))
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

    fn event(&mut self, line: &EventLine<'_>) -> Result<ControlFlow<()>, JsonLineFault> {
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

    fn intern_labels(&mut self, labels: &[(TextBytes<'_>, LabelObject<'_>)]) -> Result<LabelsId, ReadError> {
        self.labels.clear();
        for (key, value) in labels {
            let key = self.tables.intern_string(&key.0)?;
            let value = intern_label_value(self.tables, value)?;
            self.labels.push(Label { key, value });
        }
        Ok(self.tables.intern_labels(&self.labels)?)
    }

    /// Takes the warnings of the input that the lines were made from.
    fn end(&mut self, line: EndLine<'_>) -> Result<(), JsonLineFault> {
        self.stage = Stage::Ended;
        let mut named = 0_u64;
        for warning in line.warnings {
            named = named.saturating_add(warning.lost_bytes);
            let WarningObject { offset, message, lost_bytes, saved_samples } = warning;
            self.pass_on(Warning::new(message).at(offset).losing(lost_bytes).saving(saved_samples))?;
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
    fn compare(&mut self, what: &str, expected: Option<u64>, found: u64) -> Result<(), JsonLineFault> {
        match expected {
            Some(expected) if expected != found => {
                let message = format!("missing {what}: expected {expected}, found {found}");
                Ok(self.pass_on(Warning::new(message))?)
            }
            _ => Ok(()),
        }
    }

    fn warn_of_missing_end(&mut self, offset: Option<u64>) -> Result<(), ReadError> {
        let message = r#"truncated: expected a last line of type "end""#;
        self.pass_on(Warning::truncated(message).at(offset))
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
                format!("stacks of {count} events are not read as samples: convert the lines to trc first");
            self.recovery.note(Warning::new(message));
        }
    }
}

impl JsonLineParser for Importer<'_> {
    fn line(&mut self, line: &[u8], _number: u64) -> Result<ControlFlow<()>, JsonLineFault> {
        match parse_line(line).map_err(|error| JsonLineFault::parse(&error, line))? {
            JsonLine::Sample(line) => return self.sample(&line),
            JsonLine::Event(line) => return self.event(&line),
            JsonLine::Stack(line) => self.stack(&line)?,
            JsonLine::Segment(line) => self.segment(&line)?,
            JsonLine::Metadata(line) => self.metadata(&line)?,
            JsonLine::Thread(line) => self.thread(&line)?,
            JsonLine::Input(line) => self.sink.source(&line.name)?,
            JsonLine::File(line) => self.file(&line)?,
            JsonLine::End(line) => self.end(line)?,
            JsonLine::Other => {}
        }
        Ok(ControlFlow::Continue(()))
    }

    fn skipped(&mut self, warning: Warning) -> Result<(), ReadError> {
        self.pass_on(warning)
    }
}

const fn measure(shown: DefaultValue) -> Measure {
    match shown {
        DefaultValue::Value(column) => Measure::Value(column),
        DefaultValue::Other(OtherValue::Count) => Measure::Count,
        DefaultValue::Other(OtherValue::Time) => Measure::Time,
    }
}

fn process(text: Option<&str>) -> Result<Option<i64>, JsonLineFault> {
    text.map(|text| lane_id(text).map(LaneId::to_process)).transpose()
}

fn thread(text: Option<&str>) -> Result<Option<u64>, JsonLineFault> {
    text.map(|text| lane_id(text).map(LaneId::to_u64)).transpose()
}

fn lane_id(text: &str) -> Result<LaneId, JsonLineFault> {
    let wrong = || {
        JsonLineFault::malformed(format!(
            "expected a thread or process number, found \"{}\"",
            text.escape_debug()
        ))
    };
    LaneId::parse(text).ok_or_else(wrong)
}

fn value_type((kind, unit): &(String, String)) -> ValueType {
    ValueType { kind: kind.clone(), unit: unit.clone() }
}

fn intern_text(tables: &mut Tables, text: Option<&TextBytes<'_>>) -> Result<Option<StringId>, ReadError> {
    Ok(text.map(|text| tables.intern_string(&text.0)).transpose()?)
}

fn intern_frame(tables: &mut Tables, format: &str, frame: &FrameObject<'_>) -> Result<FrameId, ReadError> {
    let module = frame.module.as_ref().map_or(b"".as_slice(), |module| &module.0);
    let native = match frame.native {
        true => Some(NativeFrame {
            module: tables.intern_string(module)?,
            offset: frame.offset,
            file_offset: None,
        }),
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
    let stated = [&frame.namespace, &frame.class, &frame.method];
    let parts = if stated.iter().any(|part| part.is_some()) {
        Some(stated.map(|part| part.as_ref().map_or(b"".as_slice(), |part| &part.0)))
    } else if frame.parts == Some(false) {
        None
    } else {
        assumed_parts(format, frame.native, &frame.function.0)
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
fn status(flags: &[TextBytes<'_>]) -> Result<Status, JsonLineFault> {
    let mut bits = 0;
    for flag in flags {
        let Status(bit) = Status::flag(&flag.0).ok_or_else(|| {
            let found = String::from_utf8_lossy(&flag.0);
            JsonLineFault::malformed(format!("expected a thread state, found \"{}\"", found.escape_debug()))
        })?;
        bits |= bit;
    }
    Ok(Status(bits))
}
