//! Anonymized events: what happened and when stays, the words of the program go.

use std::borrow::Cow;

use borehole_model::dial9::{event, field, metadata};
use borehole_model::{
    Annotation, Column, Event, FieldShape, Shape, ShapeId, StringId, TableFull, Tables, Value,
};

use super::RedactedTables;

/// Events of dial9 and of `borehole-recorder` that are known by name, with all their fields.
const KNOWN_EVENTS: [&str; 24] = [
    event::POLL_START,
    event::POLL_END,
    event::WORKER_PARK,
    event::WORKER_UNPARK,
    event::RUNTIME_METRICS,
    event::QUEUE_SAMPLE,
    event::TASK_SPAWN,
    event::TASK_TERMINATE,
    event::WAKE,
    event::CPU_SAMPLE,
    event::ALLOC,
    event::TASK_DUMP,
    event::SYMBOL,
    event::METADATA,
    event::CLOCK_SYNC,
    event::SPAN_CLOSE,
    event::EVENTS_LOST,
    "FreeEvent",
    "MemoryProfileOverflowEvent",
    "ProcessResourceUsageEvent",
    "CgroupEvent",
    "TcpAcceptQueueEvent",
    "DumpTriggeredEvent",
    "HttpRequestEvent",
];

/// Fields that mean the same in events of the program.
const KNOWN_FIELDS: [&str; 8] = [
    field::WORKER,
    field::TASK,
    field::SPAN_TASK,
    field::THREAD,
    field::SPAN,
    field::SPAN_NAME,
    "parent_span_id",
    field::STACK,
];

/// Keys and values of annotations: how a field is to be read.
///
/// Source: the specification of `trc`.
const KNOWN_ANNOTATIONS: [&str; 5] = ["kind", "unit", "gauge", "counter", "updown-counter"];

/// Metadata whose values are numbers or words of the format.
const KNOWN_METADATA: [&str; 3] = [metadata::COMPLETE, metadata::PROCESS, metadata::POLL_COVERAGE];

/// The shapes of events with new names, by their old ones.
#[derive(Default)]
pub(super) struct RedactedShapes(Column<ShapeId>);

impl RedactedShapes {
    /// The shape with new names. The names of known events and fields stay, so that what reads them reads them still.
    pub(super) fn shape(
        &mut self,
        id: ShapeId,
        tables: &Tables,
        redacted: &mut RedactedTables,
    ) -> Result<ShapeId, TableFull> {
        if let Some(known) = self.0.get(id.index()) {
            return Ok(known);
        }
        let shape = tables.shape(id);
        let name = tables.string(shape.name);
        let has_known_fields = is_one_of(name, &KNOWN_EVENTS);
        let mut fields = Vec::with_capacity(shape.fields.len());
        for own in &shape.fields {
            let text = tables.string(own.name);
            let stays = has_known_fields || is_one_of(text, &KNOWN_FIELDS);
            fields.push(FieldShape { name: redacted.text(text, stays)?, ..*own });
        }
        let mut annotations = Vec::with_capacity(shape.annotations.len());
        for own in &shape.annotations {
            let mut word = |id: StringId| {
                let text = tables.string(id);
                let stays = is_one_of(text, &KNOWN_ANNOTATIONS) || is_one_of(text, &super::COMMON_TYPES);
                redacted.text(text, stays)
            };
            annotations.push(Annotation { field: own.field, key: word(own.key)?, value: word(own.value)? });
        }
        let shape = Shape { name: redacted.event_name(name, has_known_fields)?, fields, annotations };
        Ok(self.0.set(id.index(), redacted.tables.intern_shape(&shape)?))
    }
}

impl RedactedTables {
    fn text(&mut self, text: &[u8], stays: bool) -> Result<StringId, TableFull> {
        if stays { self.tables.intern_string(text) } else { self.words(text) }
    }

    /// Events of spans bear the names of the spans behind known beginnings.
    fn event_name(&mut self, name: &[u8], is_known: bool) -> Result<StringId, TableFull> {
        for beginning in [event::SPAN_ENTER_PREFIX, event::SPAN_EXIT_PREFIX] {
            if let Some(span) = name.strip_prefix(beginning.as_bytes()) {
                let new = [beginning.as_bytes(), &self.namer.words(span)].concat();
                return self.tables.intern_string(&new);
            }
        }
        self.text(name, is_known)
    }

    /// The values of an event: texts get new words, bytes are left out, and numbers and addresses stay.
    pub(super) fn values<'v>(&self, of: &Event<'v>, tables: &Tables) -> Vec<Value<'v>> {
        let shape = tables.shape(of.shape);
        let is_metadata = tables.string(shape.name) == event::METADATA.as_bytes();
        let is_place = |field: Option<&FieldShape>| {
            field.is_some_and(|field| tables.string(field.name) == field::SPAWNED_AT.as_bytes())
        };
        let value = |(field, value): (usize, &Value<'v>)| match value {
            Value::Map(entries) if is_metadata => {
                Value::Map(entries.iter().map(|(key, value)| self.metadata(key, value)).collect())
            }
            Value::Text(place) if is_place(shape.fields.get(field)) => {
                Value::Text(Cow::Owned(self.place(place)))
            }
            value => self.value(value),
        };
        of.values.iter().enumerate().map(value).collect()
    }

    /// A file, with its line and column if it has some, which stay.
    fn place(&self, place: &str) -> String {
        let file = place.trim_end_matches(|char: char| char.is_ascii_digit() || char == ':');
        format!("{}{}", self.new_words(file), &place[file.len()..])
    }

    fn value<'v>(&self, value: &Value<'v>) -> Value<'v> {
        match value {
            Value::Text(text) => Value::Text(Cow::Owned(self.new_words(text))),
            Value::Bytes(_) => Value::Bytes(&[]),
            Value::List(values) => Value::List(values.iter().map(|value| self.value(value)).collect()),
            Value::Map(entries) => {
                Value::Map(entries.iter().map(|(key, value)| (self.value(key), self.value(value))).collect())
            }
            other => other.clone(),
        }
    }

    /// Keys of dial9 stay, and the numbers of the workers of a runtime; values are new, except those of the format.
    fn metadata<'v>(&self, key: &Value<'v>, value: &Value<'v>) -> (Value<'v>, Value<'v>) {
        let Value::Text(name) = key else { return (self.value(key), self.value(value)) };
        if let Some(runtime) = name.strip_prefix(metadata::RUNTIME_PREFIX) {
            let new = format!("{}{}", metadata::RUNTIME_PREFIX, self.new_words(runtime));
            return (Value::Text(Cow::Owned(new)), value.clone());
        }
        if KNOWN_METADATA.contains(&&**name) {
            return (key.clone(), value.clone());
        }
        let stays = [metadata::HOST, metadata::BOOT, metadata::DUMP_REASON].contains(&&**name);
        (if stays { key.clone() } else { self.value(key) }, self.value(value))
    }

    fn new_words(&self, text: &str) -> String {
        String::from_utf8_lossy(&self.namer.words(text.as_bytes())).into_owned()
    }
}

fn is_one_of(name: &[u8], known: &[&str]) -> bool {
    known.iter().any(|known| known.as_bytes() == name)
}
