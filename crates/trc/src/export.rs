//! Exports the model to `trc`.

use std::borrow::Cow;
use std::io::{self, Write};
use std::ops::ControlFlow;

use borehole_model::{
    Context, Event, FieldKind as ModelKind, ProfileSink, Sample, Shape, ShapeId, StringId, Tables, Thread,
    ThreadNames, Value, Warning, dial9,
};
use hashbrown::HashMap;

use super::encode::EventWriter;
use super::import::model_kind;
use super::keys;
use super::layout::{Dialect, FieldKind, FieldType, MAX_NESTING};
use super::samples::SampleEvents;
use super::schema::{Annotation, Definition, Field, Schema};
use super::value::{Stack, StackFrames};
use super::write::{ValueDef, WriteOptions, Writer};
use crate::{Export, Losses};

/// The options of an export to `trc`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExportOptions {
    /// The readers that must support the stream.
    pub dialect: Dialect,
}

/// Writes the events of a profile, each segment as one batch, or as several if it is long.
///
/// Samples become events of dial9's types, with symbols for their frames. Sources that are kept apart begin with an
/// event that names them, and have their own symbols.
///
/// Memory: one batch, the events' distinct shapes, and at most 16 MiB of stacks.
pub struct Exporter<W: Write> {
    writer: Writer<W>,
    options: ExportOptions,
    schemas: HashMap<SchemaKey, Schema>,
    /// Created for the first sample, or the first event that states the clock.
    samples: Option<Box<SampleEvents>>,
    /// Whether the facts of the current segment have been written.
    has_begun: bool,
    /// The next source, not written yet.
    next_source: Option<String>,
    /// The names of the source's threads.
    thread_names: ThreadNames,
    /// The losses of everything but the samples.
    losses: Losses,
}

/// The properties that determine an event's schema.
#[derive(Clone, PartialEq, Eq, Hash)]
struct SchemaKey {
    shape: ShapeId,
    type_id: Option<u32>,
    has_time: bool,
    /// The kinds of the values, if the shape declares none.
    undeclared: Vec<FieldKind>,
}

impl<W: Write> Exporter<W> {
    /// Creates an exporter to `output`.
    pub fn new(output: W, options: ExportOptions) -> Self {
        let write = WriteOptions { dialect: options.dialect, ..WriteOptions::default() };
        Self {
            writer: Writer::with_options(output, write),
            options,
            schemas: HashMap::new(),
            samples: None,
            has_begun: false,
            next_source: None,
            thread_names: ThreadNames::default(),
            losses: Losses::default(),
        }
    }

    /// The schema of an event, created on first use.
    fn schema(&mut self, tables: &Tables, event: &Event<'_>) -> io::Result<Schema> {
        let shape = tables.shape(event.shape);
        let key = SchemaKey {
            shape: event.shape,
            type_id: event.type_id,
            has_time: event.time_ns.is_some(),
            undeclared: undeclared(shape, event.values),
        };
        if let Some(schema) = self.schemas.get(&key) {
            return Ok(schema.clone());
        }
        let schema = define(tables, shape, &key, self.options.dialect)?;
        if let Some(type_id) = event.type_id.and_then(|type_id| u16::try_from(type_id).ok()) {
            self.writer.want_type_id(&schema, type_id);
        }
        self.schemas.insert(key, schema.clone());
        Ok(schema)
    }

    /// Begins the announced source.
    #[cold]
    fn begin_source(&mut self, name: &str) -> io::Result<()> {
        if let Some(samples) = &mut self.samples {
            samples.begin_source();
        }
        self.own_event(keys::INPUT, keys::INPUT_NAME, FieldKind::PooledString, u16::MAX, name)
    }

    /// Writes an event of Borehole's own, whose one field is a text. Its type id is far from those of the source's
    /// events, which do not change.
    fn own_event(
        &mut self,
        name: &str,
        field: &str,
        kind: FieldKind,
        type_id: u16,
        text: &str,
    ) -> io::Result<()> {
        let schema = Schema::with_fields(name, false, [(field, FieldType::required(kind))])?;
        self.writer.want_type_id(&schema, type_id);
        self.writer.write_event(&schema, None, &[ValueDef::Text(text)])
    }
}

impl<W: Write> ProfileSink for Exporter<W> {
    fn sample(&mut self, at: Context<'_>, sample: &Sample<'_>) -> io::Result<ControlFlow<()>> {
        if let Some(name) = self.next_source.take() {
            self.begin_source(&name)?;
        }
        let samples = sample_events(&mut self.samples)?;
        if !std::mem::replace(&mut self.has_begun, true) {
            samples.begin(&mut self.writer, at.tables, at.segment)?;
        }
        let name = at.thread(sample).and_then(|thread| self.thread_names.of(thread).copied());
        samples.write(&mut self.writer, at, sample, name)?;
        Ok(ControlFlow::Continue(()))
    }

    fn event(&mut self, at: Context<'_>, event: &Event<'_>) -> io::Result<ControlFlow<()>> {
        if let Some(name) = self.next_source.take() {
            self.begin_source(&name)?;
        }
        let schema = self.schema(at.tables, event)?;
        let mut fields = self.writer.begin_event(&schema, event.time_ns);
        for (value, field) in event.values.iter().zip(schema.fields()) {
            self.losses.add("bytes outside UTF-8 (in texts)", invalid_texts(value, field.field_type.kind));
            let is_written = put_field(&mut fields, value, field.field_type);
            self.losses.add("lists and maps", u64::from(!is_written));
        }
        fields.finish()?;
        if schema.name() == dial9::event::CLOCK_SYNC
            && let Some(start_unix_ns) = clock_start(&schema, event)
        {
            sample_events(&mut self.samples)?.follow_clock(start_unix_ns);
        }
        Ok(ControlFlow::Continue(()))
    }

    fn keeps_events(&mut self) -> bool {
        true
    }

    fn source(&mut self, name: &str) -> io::Result<()> {
        self.next_source = Some(name.to_owned());
        self.thread_names.clear();
        Ok(())
    }

    fn thread(&mut self, _at: Context<'_>, thread: Thread, name: StringId) -> io::Result<()> {
        self.thread_names.name(thread, name);
        Ok(())
    }

    fn metadata(&mut self, _at: Context<'_>, _key: StringId, _value: StringId) -> io::Result<()> {
        // It came too late for the event that states it.
        self.losses.add("metadata entries", 1);
        Ok(())
    }

    fn warning(&mut self, warning: &Warning) -> io::Result<()> {
        let at = warning.offset.map(|offset| format!(" (at byte {offset:#x})")).unwrap_or_default();
        let text = format!("{}{at}", warning.message);
        self.own_event(keys::WARNING, keys::WARNING_MESSAGE, FieldKind::String, u16::MAX - 1, &text)
    }

    fn segment(&mut self, _at: Context<'_>) -> io::Result<()> {
        self.has_begun = false;
        self.writer.end_batch()
    }

    fn finish(&mut self, _tables: &Tables) -> io::Result<()> {
        self.writer.complete()
    }
}

impl<W: Write> Export for Exporter<W> {
    fn losses(&self) -> Losses {
        let mut losses = Losses::default();
        if let Some(samples) = &self.samples {
            samples.add_losses(&mut losses);
        }
        self.losses.iter().for_each(|(what, count)| losses.add(what, count));
        losses
    }
}

fn sample_events(samples: &mut Option<Box<SampleEvents>>) -> io::Result<&mut SampleEvents> {
    Ok(match samples {
        Some(samples) => samples,
        none => none.insert(Box::new(SampleEvents::new()?)),
    })
}

/// The wall time of the origin of a trace's clock, as a `ClockSyncEvent` states it.
fn clock_start(schema: &Schema, event: &Event<'_>) -> Option<i64> {
    let is_wall_time = |field: &Field| field.name == dial9::field::UNIX_TIME;
    let value = event.values.get(schema.fields().iter().position(is_wall_time)?)?;
    let Value::Unsigned(unix_ns) = *value else { return None };
    i64::try_from(i128::from(unix_ns) - i128::from(event.time_ns?)).ok()
}

/// The number of texts of a value that are not UTF-8; they are replaced, because readers of the format reject them.
fn invalid_texts(value: &Value<'_>, kind: FieldKind) -> u64 {
    match (value, kind) {
        (Value::Bytes(_), FieldKind::String | FieldKind::PooledString) => 1,
        (Value::Map(pairs), FieldKind::StringMap) => {
            let texts = pairs.iter().flat_map(|(key, value)| [key, value]);
            texts.filter(|text| matches!(text, Value::Bytes(_))).count() as u64
        }
        _ => 0,
    }
}

/// The kinds of the values whose fields declare none. Most shapes declare all.
fn undeclared(shape: &Shape, values: &[Value<'_>]) -> Vec<FieldKind> {
    let fields = shape.fields.iter().zip(values);
    fields.filter(|(field, _)| field.kind == ModelKind::Undeclared).map(|(_, value)| kind_of(value)).collect()
}

/// The kind to declare for a value. An absent value has an arbitrary one.
const fn kind_of(value: &Value<'_>) -> FieldKind {
    match value {
        Value::Absent | Value::Unsigned(_) => FieldKind::Varint,
        Value::Signed(_) => FieldKind::I64,
        Value::Float(_) => FieldKind::F64,
        Value::Bool(_) => FieldKind::Bool,
        Value::Text(_) | Value::Unresolved(_) => FieldKind::PooledString,
        Value::Bytes(_) => FieldKind::Bytes,
        Value::Stack(_) => FieldKind::PooledStack,
        Value::List(_) => FieldKind::List,
        Value::Map(_) => FieldKind::Map,
    }
}

fn define(tables: &Tables, shape: &Shape, key: &SchemaKey, dialect: Dialect) -> io::Result<Schema> {
    let text = |id| String::from_utf8_lossy(tables.string(id)).into_owned();
    let mut undeclared = key.undeclared.iter();
    let fields = shape.fields.iter().map(|field| {
        let declared = declared_kind(field.kind);
        let kind = declared.or_else(|| undeclared.next().copied()).unwrap_or(FieldKind::Varint);
        let optional = field.optional || declared.is_none() || !is_writable(kind, dialect);
        let kind = if is_writable(kind, dialect) { kind } else { FieldKind::Varint };
        Field { name: text(field.name), field_type: FieldType { kind, optional } }
    });
    let annotations = shape.annotations.iter().map(|annotation| Annotation {
        field: u16::try_from(annotation.field).unwrap_or(u16::MAX),
        key: text(annotation.key),
        value: text(annotation.value),
    });
    let definition = Definition {
        name: text(shape.name),
        has_timestamp: key.has_time,
        fields: fields.collect(),
        annotations: annotations.collect(),
    };
    Ok(Schema::define(definition)?)
}

const fn is_writable(kind: FieldKind, dialect: Dialect) -> bool {
    !matches!((kind, dialect), (FieldKind::List | FieldKind::Map, Dialect::V032))
}

/// The kind for a declared kind of the model; `None` if it is undeclared.
fn declared_kind(kind: ModelKind) -> Option<FieldKind> {
    FieldKind::ALL.iter().copied().find(|known| model_kind(*known) == kind)
}

/// Writes the value of a field. Returns whether the dialect has such values; otherwise the field stays empty.
fn put_field<W: Write>(fields: &mut EventWriter<'_, W>, value: &Value<'_>, field_type: FieldType) -> bool {
    match (value, field_type.kind) {
        (Value::Map(pairs), FieldKind::StringMap) => {
            let pairs: Vec<_> = pairs.iter().map(|(key, value)| (text_of(key), text_of(value))).collect();
            fields.put_text_map(&pairs);
        }
        (Value::Bytes(_), FieldKind::String | FieldKind::PooledString) => fields.put_text(&text_of(value)),
        (Value::List(_) | Value::Map(_), FieldKind::Varint) => {
            fields.put_absent();
            return false;
        }
        _ => put(fields, value, MAX_NESTING),
    }
    true
}

fn text_of<'a>(value: &'a Value<'_>) -> Cow<'a, str> {
    match value {
        Value::Text(text) => Cow::Borrowed(text),
        Value::Bytes(bytes) => String::from_utf8_lossy(bytes),
        _ => Cow::Borrowed(""),
    }
}

/// Writes a value with at most `levels` levels of nested lists; the writer rejects deeper ones.
fn put<W: Write>(fields: &mut EventWriter<'_, W>, value: &Value<'_>, levels: usize) {
    match value {
        Value::Absent => fields.put_absent(),
        Value::Unsigned(value) => fields.put_unsigned(*value),
        Value::Signed(value) => fields.put(&ValueDef::Signed(*value)),
        Value::Float(value) => fields.put(&ValueDef::Float(*value)),
        Value::Bool(value) => fields.put(&ValueDef::Bool(*value)),
        Value::Text(text) => fields.put_text(text),
        Value::Bytes(bytes) => fields.put_bytes(bytes),
        Value::Stack(addresses) => fields.put_stack(StackFrames::Stored(Stack(addresses.0))),
        Value::Unresolved(id) => fields.put_unresolved(*id),
        Value::List(values) => {
            if fields.begin_list(values.len()) && levels > 0 {
                values.iter().for_each(|value| put(fields, value, levels - 1));
            }
        }
        Value::Map(pairs) => {
            if fields.begin_map(pairs.len()) && levels > 0 {
                for (key, value) in pairs {
                    put(fields, key, levels - 1);
                    put(fields, value, levels - 1);
                }
            }
        }
    }
}
