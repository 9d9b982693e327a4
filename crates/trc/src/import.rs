//! Imports `trc` into the model.

use std::borrow::Cow;
use std::io::{Read, Seek, Write};
use std::ops::ControlFlow;

use borehole_model::{
    Addresses, Annotation, Context, Event as ModelEvent, FieldKind as ModelKind, FieldShape, Label,
    LabelValue, ProfileSink, Recovery, Segment, Shape, ShapeId, TableFull, Tables, Value as ModelValue,
    Warning, dial9,
};
use borehole_text::counted;

use super::NAME;
use super::event::Event;
use super::frame::FrameKind;
use super::keys;
use super::layout::FieldKind;
use super::per_type::PerType;
use super::read::Reader;
use super::samples::Sampler;
use super::schema::Schema;
use super::value::Value;
use crate::{ReadError, ReadOptions};

/// Streams `input`, raw or compressed, into `sink`: each batch is a segment, each event an event.
///
/// A sink that does not keep events receives samples from the events with stacks, of the kind in
/// [`ReadOptions::samples`], labelled with `source`, `worker` and `task` as far as the trace states them. They wait for
/// their symbols in `spool`, an empty temporary file.
///
/// In a trace merged from several inputs that were kept apart, each input is a source, and samples get the label
/// `input`.
///
/// Text of maps that is not UTF-8 is kept as bytes, and U+FFFD replaces invalid UTF-8 in other text. A warning reports
/// their number, by the name of their events.
///
/// A trace's own reports of damage that it was recovered from become notes.
///
/// # Errors
/// If the input is damaged (read strictly) or cannot be read, or the sink fails.
pub fn import<S: Read + Write + Seek>(
    input: impl Read,
    options: &ReadOptions,
    spool: S,
    tables: &mut Tables,
    sink: &mut dyn ProfileSink,
) -> Result<Recovery, ReadError> {
    let mut reader = Reader::with_options(input, *options);
    let sampler = (!sink.keeps_events()).then(|| Sampler::new(options.samples, options.limits, spool));
    let (segment, shapes) = (Segment::default(), PerType::default());
    let is_watched = sink.watches_events();
    let report = ImportReport::default();
    let mut importer = Importer {
        tables,
        sink,
        sampler,
        is_watched,
        segment,
        shapes,
        batches: 0,
        unchecked: EVENTS_BETWEEN_CHECKS,
        outer: None,
        report,
    };
    let mut outcome = importer.run(&mut reader);
    let mut recovery = reader.into_recovery();
    recovery.events = recovery.events.saturating_sub(importer.report.kept_back);
    importer.report.warn_of_texts(&mut recovery);
    if !is_failure(&outcome) {
        // A sink that has stopped receives no more samples.
        recovery.stopped = matches!(outcome, Ok(ControlFlow::Break(())));
        outcome = importer.conclude(&mut recovery).and(outcome);
    }
    recovery.merge(importer.complete(!is_failure(&outcome))?);
    outcome.map(|_| recovery)
}

/// The number of events between checks of the memory that the sampler holds. Each adds at most a few hundred bytes, apart from
/// names and stacks, which are checked as they come.
const EVENTS_BETWEEN_CHECKS: u32 = 1 << 12;

/// The maximum number of event names in the warnings about invalid UTF-8.
const MAX_NAMES: usize = 20;

/// Whether the sink has failed and must receive nothing more.
const fn is_failure<T>(outcome: &Result<T, ReadError>) -> bool {
    matches!(outcome, Err(ReadError::Sink(_)))
}

struct Importer<'a, S: Write> {
    tables: &'a mut Tables,
    sink: &'a mut dyn ProfileSink,
    /// `Some` if events with stacks become samples.
    sampler: Option<Sampler<S>>,
    /// Whether those events are delivered as events too.
    is_watched: bool,
    segment: Segment,
    shapes: PerType<KnownShape>,
    batches: u64,
    /// The number of events until the sampler's memory is checked.
    unchecked: u32,
    /// The earlier common labels, once the trace has begun inputs of its own.
    outer: Option<Vec<Label>>,
    report: ImportReport,
}

/// The facts about an import that are reported at its end.
#[derive(Default)]
struct ImportReport {
    /// The number of events not delivered as events.
    kept_back: u64,
    /// The outcome of the samples.
    samples: Recovery,
    invalid_texts: Vec<InvalidTexts>,
    /// Oddities and losses of the trace's own recovery.
    earlier: Vec<Warning>,
}

/// Texts in events of one name that are not UTF-8.
struct InvalidTexts {
    name: String,
    /// The offset of their first event.
    offset: u64,
    texts: InvalidTextCounts,
}

/// The numbers of texts that are not UTF-8, by their handling.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct InvalidTextCounts {
    /// Keys and values of maps of text, which are kept as bytes, so that different keys stay different.
    kept: u64,
    /// All others, which are replaced as in the reference reader.
    replaced: u64,
}

impl InvalidTextCounts {
    const fn add(&mut self, other: Self) {
        self.kept = self.kept.saturating_add(other.kept);
        self.replaced = self.replaced.saturating_add(other.replaced);
    }
}

/// The known facts about a type of events.
#[derive(Clone, Copy)]
struct KnownShape {
    shape: ShapeId,
    /// Whether the events themselves hold text, which need not be UTF-8.
    has_text: bool,
    role: Role,
}

impl KnownShape {
    #[cold]
    fn new(schema: &Schema, tables: &mut Tables) -> Result<Self, TableFull> {
        let has_text = schema.fields().iter().any(|field| may_hold_text(field.field_type.kind));
        let role = match schema.name() {
            keys::INPUT => Role::Input,
            keys::WARNING => Role::Warning,
            _ => Role::Event,
        };
        Ok(Self { shape: intern_shape(tables, schema)?, has_text, role })
    }
}

/// The purpose of an event.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Event,
    /// It begins an input.
    Input,
    /// It reports damage that the trace was recovered from.
    Warning,
}

impl<S: Read + Write + Seek> Importer<'_, S> {
    fn run(&mut self, reader: &mut Reader<impl Read>) -> Result<ControlFlow<()>, ReadError> {
        // The memory of the values is reused for each event, though their borrows are not.
        let mut memory: Vec<ModelValue<'static>> = Vec::new();
        while let Some(kind) = reader.step()? {
            let mut outcome = Ok(ControlFlow::Continue(()));
            let flow = match kind {
                FrameKind::Header { .. } => self.batch(reader.offset())?,
                FrameKind::Event { row, timestamp_ns } => reader.visit_run((row, timestamp_ns), |event| {
                    outcome = self.take(event, &mut memory);
                    outcome.as_ref().map_or(ControlFlow::Break(()), |flow| *flow)
                }),
                _ => ControlFlow::Continue(()),
            };
            if outcome.map(|_| flow)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    #[inline(always)]
    fn take(
        &mut self,
        event: &Event<'_>,
        memory: &mut Vec<ModelValue<'static>>,
    ) -> Result<ControlFlow<()>, ReadError> {
        if let Some(sampler) = &mut self.sampler {
            self.unchecked -= 1;
            if self.unchecked == 0 {
                self.unchecked = EVENTS_BETWEEN_CHECKS;
                sampler.check_memory()?;
            }
            if sampler.absorb(event, self.tables)? && !self.is_watched {
                self.report.kept_back += 1;
                return Ok(ControlFlow::Continue(()));
            }
        }
        let mut values = std::mem::take(memory);
        let flow = self.event(event, &mut values)?;
        *memory = recycle(values);
        Ok(flow)
    }

    fn batch(&mut self, offset: u64) -> Result<ControlFlow<()>, ReadError> {
        self.shapes.clear();
        self.segment = Segment {
            format: NAME,
            index: self.batches,
            offset: Some(offset),
            has_times: true,
            ..Segment::default()
        };
        self.batches += 1;
        match &mut self.sampler {
            Some(sampler) => sampler.begin_batch(),
            None => self.sink.segment(Context { tables: self.tables, segment: &self.segment })?,
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Delivers the parts known only at the end: the warnings, and the samples unless the sink has stopped.
    fn conclude(&mut self, recovery: &mut Recovery) -> Result<(), ReadError> {
        for warning in recovery.warnings.iter().chain(&self.report.earlier) {
            self.sink.warning(warning)?;
        }
        for earlier in &self.report.earlier {
            recovery.note(Warning::new(format!("from an earlier recovery: {}", earlier.message)));
        }
        if let Some(sampler) = self.sampler.as_mut().filter(|_| !recovery.stopped) {
            recovery.stopped = sampler.deliver(self.tables, self.sink, &mut self.report.samples)?.is_break();
        }
        Ok(())
    }

    /// Takes an event of Borehole's own, about the contents of the trace.
    #[cold]
    fn own_event(&mut self, event: &Event<'_>, role: Role) -> Result<ControlFlow<()>, ReadError> {
        if role == Role::Input {
            return self.begin_input(event);
        }
        self.report.kept_back += 1;
        let message = event.value_of(keys::WARNING_MESSAGE).and_then(Value::as_str).unwrap_or_default();
        if self.report.earlier.len() < Recovery::MAX_WARNINGS {
            self.report.earlier.push(Warning::new(message));
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Begins another input.
    #[cold]
    fn begin_input(&mut self, event: &Event<'_>) -> Result<ControlFlow<()>, ReadError> {
        self.report.kept_back += 1;
        let name = event.value_of(keys::INPUT_NAME).and_then(Value::as_str).unwrap_or_default();
        if let Some(sampler) = &mut self.sampler
            && sampler.begin_input(name, self.tables, self.sink, &mut self.report.samples)?.is_break()
        {
            return Ok(ControlFlow::Break(()));
        }
        self.sink.source(name)?;
        let key = self.tables.intern_string(dial9::label::INPUT.as_bytes())?;
        let value = LabelValue::Text(self.tables.intern_string(name.as_bytes())?);
        let labels = if name.is_empty() { Vec::new() } else { vec![Label { key, value }] };
        let before = self.tables.set_common_labels(labels);
        self.outer.get_or_insert(before);
        Ok(ControlFlow::Continue(()))
    }

    /// Restores the state before the trace, and informs the sink if it `listens`; returns the outcome of the samples.
    fn complete(mut self, listens: bool) -> Result<Recovery, ReadError> {
        if let Some(sampler) = &mut self.sampler {
            sampler.note_left_out(self.sink, &mut self.report.samples);
        }
        if let Some(outer) = self.outer {
            self.tables.set_common_labels(outer);
            if listens {
                self.sink.source("")?;
            }
        }
        Ok(self.report.samples)
    }

    fn event<'e>(
        &mut self,
        event: &Event<'e>,
        values: &mut Vec<ModelValue<'e>>,
    ) -> Result<ControlFlow<()>, ReadError> {
        let KnownShape { shape, has_text, role, .. } = self.shape(event)?;
        if role != Role::Event {
            return self.own_event(event, role);
        }
        values.extend(event.values().map(model_value));
        if has_text && values.iter().any(holds_bytes) {
            self.report.count_invalid_texts(event);
        }
        let event = ModelEvent {
            shape,
            type_id: Some(u32::from(event.type_id())),
            time_ns: event.timestamp_ns(),
            values,
        };
        Ok(self.sink.event(Context { tables: self.tables, segment: &self.segment }, &event)?)
    }

    #[inline]
    fn shape(&mut self, event: &Event<'_>) -> Result<KnownShape, TableFull> {
        match self.shapes.get(event) {
            Some(known) => Ok(*known),
            None => Ok(*self.shapes.set(event, KnownShape::new(event.schema(), self.tables)?)),
        }
    }
}

impl ImportReport {
    #[cold]
    fn count_invalid_texts(&mut self, event: &Event<'_>) {
        let mut texts = InvalidTextCounts::default();
        event.values().for_each(|value| count_invalid(value, &mut texts));
        if texts == InvalidTextCounts::default() {
            return;
        }
        let known = &mut self.invalid_texts;
        // Beyond the maximum, one more entry stands for all others.
        let name = if known.len() < MAX_NAMES { event.name() } else { "other events" };
        match known.iter().position(|known| known.name == event.name() || known.name == name) {
            Some(index) => known[index].texts.add(texts),
            None => known.push(InvalidTexts { name: name.to_owned(), offset: event.offset(), texts }),
        }
    }

    /// Warns of the events with texts that are not UTF-8.
    fn warn_of_texts(&self, recovery: &mut Recovery) {
        for InvalidTexts { name, offset, texts } in &self.invalid_texts {
            for (count, becomes) in [(texts.kept, "kept as bytes"), (texts.replaced, "replaced with U+FFFD")]
            {
                if count > 0 {
                    let found = format!("found other bytes in {}, {becomes}", counted(count, "text"));
                    let message = format!("invalid text in {name}: expected UTF-8, {found}");
                    recovery.warn(Warning::new(message).at(*offset));
                }
            }
        }
    }
}

/// An empty list with the memory of `values`. Collecting in place keeps it.
fn recycle(mut values: Vec<ModelValue<'_>>) -> Vec<ModelValue<'static>> {
    values.clear();
    values.into_iter().map(|_| ModelValue::Absent).collect()
}

/// Whether values of that kind hold text themselves, which need not be UTF-8.
const fn may_hold_text(kind: FieldKind) -> bool {
    matches!(kind, FieldKind::String | FieldKind::StringMap | FieldKind::List | FieldKind::Map)
}

/// Whether a value holds bytes or changed text, either of which may replace text that is not UTF-8.
fn holds_bytes(value: &ModelValue<'_>) -> bool {
    match value {
        ModelValue::Bytes(_) | ModelValue::Text(Cow::Owned(_)) => true,
        ModelValue::List(values) => values.iter().any(holds_bytes),
        ModelValue::Map(pairs) => pairs.iter().any(|(key, value)| holds_bytes(key) || holds_bytes(value)),
        _ => false,
    }
}

/// Counts the texts of a value that are not UTF-8. Lists are nested at most [`MAX_NESTING`](super::layout::MAX_NESTING)
/// deep.
fn count_invalid(value: Value<'_>, sum: &mut InvalidTextCounts) {
    let invalid = |text: &[u8]| u64::from(std::str::from_utf8(text).is_err());
    match value {
        Value::Text(text) => sum.replaced += invalid(text),
        Value::TextMap(pairs) => pairs.for_each(|(key, value)| sum.kept += invalid(key) + invalid(value)),
        Value::List(elements) => elements.for_each(|element| count_invalid(element, sum)),
        Value::Map(pairs) => pairs.for_each(|(key, value)| {
            count_invalid(key, sum);
            count_invalid(value, sum);
        }),
        _ => {}
    }
}

fn intern_shape(tables: &mut Tables, schema: &Schema) -> Result<ShapeId, TableFull> {
    let mut string = |text: &str| tables.intern_string(text.as_bytes());
    let fields = schema.fields().iter().map(|field| {
        let kind = model_kind(field.field_type.kind);
        Ok(FieldShape { name: string(&field.name)?, kind, optional: field.field_type.optional })
    });
    let fields = fields.collect::<Result<_, TableFull>>()?;
    let annotations = schema.annotations().iter().map(|annotation| {
        let (key, value) = (string(&annotation.key)?, string(&annotation.value)?);
        Ok(Annotation { field: u32::from(annotation.field), key, value })
    });
    let annotations = annotations.collect::<Result<_, TableFull>>()?;
    let name = string(schema.name())?;
    tables.intern_shape(&Shape { name, fields, annotations })
}

/// The kind of the model for a kind; different kinds have different ones.
pub(super) const fn model_kind(kind: FieldKind) -> ModelKind {
    match kind {
        FieldKind::I64 => ModelKind::Signed64,
        FieldKind::F64 => ModelKind::Float64,
        FieldKind::Bool => ModelKind::Bool,
        FieldKind::String => ModelKind::Text,
        FieldKind::Bytes => ModelKind::Bytes,
        FieldKind::PooledStack => ModelKind::PooledStack,
        FieldKind::PooledString => ModelKind::PooledText,
        FieldKind::Stack => ModelKind::Stack,
        FieldKind::Varint => ModelKind::Unsigned64,
        FieldKind::StringMap => ModelKind::TextMap,
        FieldKind::U8 => ModelKind::Unsigned8,
        FieldKind::U16 => ModelKind::Unsigned16,
        FieldKind::U32 => ModelKind::Unsigned32,
        FieldKind::List => ModelKind::List,
        FieldKind::Map => ModelKind::Map,
    }
}

/// Converts a value to the model's form.
// The most frequent kinds are inlined, so that they are stored directly.
#[inline(always)]
fn model_value(value: Value<'_>) -> ModelValue<'_> {
    match value {
        Value::Absent => ModelValue::Absent,
        Value::Unsigned(value) => ModelValue::Unsigned(value),
        Value::PooledText { text: Some(text), .. } => ModelValue::Text(Cow::Borrowed(text)),
        value => any_value(value),
    }
}

/// Like [`model_value`], for any value. Lists are nested at most [`MAX_NESTING`](super::layout::MAX_NESTING) deep.
#[inline(never)]
fn any_value(value: Value<'_>) -> ModelValue<'_> {
    match value {
        Value::Absent => ModelValue::Absent,
        Value::Unsigned(value) => ModelValue::Unsigned(value),
        Value::Signed(value) => ModelValue::Signed(value),
        Value::Float(value) => ModelValue::Float(value),
        Value::Bool(value) => ModelValue::Bool(value),
        // The reference reader replaces invalid UTF-8.
        Value::Text(bytes) => ModelValue::Text(String::from_utf8_lossy(bytes)),
        Value::Bytes(bytes) => ModelValue::Bytes(bytes),
        Value::Stack(stack) => ModelValue::Stack(Addresses(stack.as_bytes())),
        Value::PooledText { text: Some(text), .. } => ModelValue::Text(Cow::Borrowed(text)),
        Value::PooledStack { stack: Some(stack), .. } => ModelValue::Stack(Addresses(stack.as_bytes())),
        Value::PooledText { id, .. } | Value::PooledStack { id, .. } => ModelValue::Unresolved(id),
        Value::TextMap(pairs) => {
            ModelValue::Map(pairs.map(|(key, value)| (text(key), text(value))).collect())
        }
        Value::List(elements) => ModelValue::List(elements.map(any_value).collect()),
        Value::Map(pairs) => {
            ModelValue::Map(pairs.map(|(key, value)| (any_value(key), any_value(value))).collect())
        }
    }
}

/// Text of a map: bytes if it is not UTF-8.
fn text(bytes: &[u8]) -> ModelValue<'_> {
    std::str::from_utf8(bytes).map_or(ModelValue::Bytes(bytes), |text| ModelValue::Text(Cow::Borrowed(text)))
}
