//! The fields of events by name.

use borehole_model::{Event, Shape, Tables, Value};

use super::Detail;

/// An event with its shape.
#[derive(Clone, Copy)]
pub(super) struct Fields<'a> {
    pub(super) tables: &'a Tables,
    pub(super) shape: &'a Shape,
    pub(super) values: &'a [Value<'a>],
}

impl<'a> Fields<'a> {
    pub(super) fn new(tables: &'a Tables, event: &Event<'a>) -> Self {
        Self { tables, shape: tables.shape(event.shape), values: event.values }
    }

    /// The name of the event; the empty text if it is not UTF-8.
    pub(super) fn event_name(self) -> &'a str {
        std::str::from_utf8(self.tables.string(self.shape.name)).unwrap_or_default()
    }

    /// All fields with their names.
    pub(super) fn iter(self) -> impl Iterator<Item = (&'a str, &'a Value<'a>)> {
        let Self { tables, shape, values } = self;
        let name = |id| std::str::from_utf8(tables.string(id)).unwrap_or_default();
        shape.fields.iter().map(move |field| name(field.name)).zip(values)
    }

    fn value(self, name: &str) -> Option<&'a Value<'a>> {
        self.iter().find(|(found, _)| *found == name).map(|(_, value)| value)
    }

    pub(super) fn number(self, name: &str) -> Option<u64> {
        match self.value(name)? {
            Value::Unsigned(number) => Some(*number),
            Value::Signed(number) => u64::try_from(*number).ok(),
            _ => None,
        }
    }

    pub(super) fn text(self, name: &str) -> Option<&'a str> {
        match self.value(name)? {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Whether the source marks a field as a number that changes over time.
    pub(super) fn is_measure(self, field: usize) -> bool {
        self.shape.annotations.iter().any(|annotation| {
            annotation.field as usize == field
                && self.tables.string(annotation.key) == b"kind"
                && matches!(self.tables.string(annotation.value), b"gauge" | b"counter" | b"updown-counter")
        })
    }

    /// All fields as details, except those that hold many values.
    pub(super) fn details(self) -> Vec<(&'a str, Detail<'a>)> {
        self.iter().filter_map(|(name, value)| Some((name, detail(value)?))).collect()
    }
}

fn detail<'a>(value: &'a Value<'a>) -> Option<Detail<'a>> {
    Some(match value {
        Value::Unsigned(number) => Detail::Unsigned(*number),
        Value::Signed(number) => Detail::Signed(*number),
        Value::Float(number) => Detail::Float(*number),
        Value::Bool(truth) => Detail::Bool(*truth),
        Value::Text(text) => Detail::Text(text.as_ref().into()),
        Value::Unresolved(id) => Detail::Text(format!("unresolved {id}").into()),
        Value::Bytes(bytes) => Detail::Text(format!("{} bytes", bytes.len()).into()),
        Value::Stack(stack) => Detail::Text(format!("{} addresses", stack.len()).into()),
        Value::List(values) => Detail::Text(format!("{} values", values.len()).into()),
        Value::Map(pairs) => Detail::Text(format!("{} entries", pairs.len()).into()),
        Value::Absent => return None,
    })
}

/// Converts a number of any type for a counter.
#[expect(clippy::cast_precision_loss, reason = "counters of timelines are floating-point numbers")]
pub(super) fn measure(value: &Value<'_>) -> Option<f64> {
    match value {
        Value::Unsigned(number) => Some(*number as f64),
        Value::Signed(number) => Some(*number as f64),
        Value::Float(number) => Some(*number).filter(|number| number.is_finite()),
        _ => None,
    }
}
