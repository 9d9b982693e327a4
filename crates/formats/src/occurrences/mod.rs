//! Moments, spans and counters of documents as events of the model: timelines draw them, and other sinks keep them.

use std::borrow::Cow;

use borehole_model::dial9::{event, field};
use borehole_model::{Annotation, FieldKind, FieldShape, Shape, ShapeId, StringId, TableFull, Tables, Value};
use hashbrown::HashMap;
use serde_json::Value as Json;

/// The longest data that is taken apart, in bytes. Longer data is one text.
const LONGEST_DATA: usize = 1 << 20;

/// The fields that have no name in the model.
const CATEGORY: &str = "category";
const DATA: &str = "data";

/// The kind of an event at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Occurrence {
    Moment,
    /// The beginning of a span, with its number.
    Enter(u64),
    Exit(u64),
}

/// The facts about an event, apart from its time.
#[derive(Debug)]
pub(crate) struct OccurrenceFacts<'a> {
    pub(crate) name: &'a str,
    pub(crate) thread: Option<u64>,
    pub(crate) category: Option<&'a str>,
    pub(crate) data: Value<'static>,
}

/// The types of events, each interned once.
#[derive(Debug, Default)]
pub(crate) struct OccurrenceShapes(HashMap<(StringId, std::mem::Discriminant<Occurrence>), ShapeId>);

impl OccurrenceShapes {
    /// The type of events of a name.
    ///
    /// # Errors
    /// If a table is full.
    pub(crate) fn of(
        &mut self,
        name: &str,
        what: Occurrence,
        tables: &mut Tables,
    ) -> Result<ShapeId, TableFull> {
        let key = (tables.intern_string(name.as_bytes())?, std::mem::discriminant(&what));
        if let Some(&known) = self.0.get(&key) {
            return Ok(known);
        }
        let shape = shape(name, what, tables)?;
        self.0.insert(key, shape);
        Ok(shape)
    }
}

fn shape(name: &str, what: Occurrence, tables: &mut Tables) -> Result<ShapeId, TableFull> {
    let (prefix, span): (_, &[_]) = match what {
        Occurrence::Moment => ("", &[]),
        Occurrence::Enter(_) => (
            event::SPAN_ENTER_PREFIX,
            &[(field::SPAN, FieldKind::Unsigned64), (field::SPAN_NAME, FieldKind::Text)],
        ),
        Occurrence::Exit(_) => (event::SPAN_EXIT_PREFIX, &[(field::SPAN, FieldKind::Unsigned64)]),
    };
    let facts: &[_] = match what {
        Occurrence::Exit(_) => &[],
        _ => &[(field::THREAD, FieldKind::Unsigned64), (CATEGORY, FieldKind::Text), (DATA, FieldKind::Map)],
    };
    let mut fields = Vec::new();
    for (optional, &(name, kind)) in
        span.iter().map(|field| (false, field)).chain(facts.iter().map(|field| (true, field)))
    {
        fields.push(FieldShape { name: tables.intern_string(name.as_bytes())?, kind, optional });
    }
    let name = tables.intern_string(format!("{prefix}{name}").as_bytes())?;
    tables.intern_shape(&Shape { name, fields, annotations: Vec::new() })
}

/// The values of an event, in the order of its fields.
pub(crate) fn values(what: Occurrence, facts: OccurrenceFacts<'_>) -> Vec<Value<'static>> {
    let OccurrenceFacts { name, thread, category, data } = facts;
    let mut values = match what {
        Occurrence::Moment => Vec::new(),
        Occurrence::Enter(span) => vec![Value::Unsigned(span), text(name.to_owned())],
        Occurrence::Exit(span) => return vec![Value::Unsigned(span)],
    };
    values.push(thread.map_or(Value::Absent, Value::Unsigned));
    values.push(category.map_or(Value::Absent, |name| text(name.to_owned())));
    values.push(data);
    values
}

/// Interns the type of a counter's events: numbers that change over time, and a text that distinguishes counters of one name.
///
/// # Errors
/// If a table is full.
pub(crate) fn counter_shape(
    name: &str,
    series: &[String],
    tables: &mut Tables,
) -> Result<ShapeId, TableFull> {
    let (mut fields, mut annotations) = (Vec::new(), Vec::new());
    for (place, series) in (0..).zip(series) {
        let name = tables.intern_string(series.as_bytes())?;
        fields.push(FieldShape { name, kind: FieldKind::Float64, optional: true });
        let (key, value) = (tables.intern_string(b"kind")?, tables.intern_string(b"gauge")?);
        annotations.push(Annotation { field: place, key, value });
    }
    fields.push(FieldShape { name: tables.intern_string(b"id")?, kind: FieldKind::Text, optional: true });
    let name = tables.intern_string(name.as_bytes())?;
    tables.intern_shape(&Shape { name, fields, annotations })
}

/// The members of an object of JSON; `None` if it is too long to be taken apart, or no object.
pub(crate) fn members(data: &[u8]) -> Option<serde_json::Map<String, Json>> {
    let parsed = if data.len() > LONGEST_DATA { None } else { serde_json::from_slice(data).ok() };
    match parsed {
        Some(Json::Object(members)) => Some(members),
        _ => None,
    }
}

/// Members as a value.
pub(crate) fn map_of(members: serde_json::Map<String, Json>) -> Value<'static> {
    Value::Map(members.into_iter().map(|(key, value)| (text(key), model_value(value))).collect())
}

/// The data of an event, as JSON: a map, or one text.
pub(crate) fn data_value(data: &[u8]) -> Value<'static> {
    match members(data) {
        _ if data.is_empty() => Value::Absent,
        Some(members) if members.is_empty() => Value::Absent,
        Some(members) => map_of(members),
        None => {
            let whole = String::from_utf8_lossy(data).into_owned();
            Value::Map(vec![(text(DATA.to_owned()), text(whole))])
        }
    }
}

fn text(text: String) -> Value<'static> {
    Value::Text(Cow::Owned(text))
}

/// A value of JSON. The parser limits how deep values are nested.
fn model_value(value: Json) -> Value<'static> {
    match value {
        Json::Null => Value::Absent,
        Json::Bool(truth) => Value::Bool(truth),
        Json::Number(number) => match (number.as_u64(), number.as_i64()) {
            (Some(number), _) => Value::Unsigned(number),
            (None, Some(number)) => Value::Signed(number),
            (None, None) => number.as_f64().map_or(Value::Absent, Value::Float),
        },
        Json::String(owned) => text(owned),
        Json::Array(values) => Value::List(values.into_iter().map(model_value).collect()),
        Json::Object(members) => map_of(members),
    }
}
