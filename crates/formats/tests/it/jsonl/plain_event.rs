//! Events as plain values.

use std::borrow::Cow;

use borehole_model::{Addresses, Event, FieldKind, FieldShape, Shape, Tables, Value};

use super::plain::Bytes;

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct PlainEvent {
    pub(crate) name: Bytes,
    pub(crate) type_id: Option<u32>,
    pub(crate) time_ns: Option<u64>,
    pub(crate) fields: Vec<(Bytes, PlainValue)>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum PlainValue {
    Absent,
    Unsigned(u64),
    Signed(i64),
    /// As bits, so that comparisons are exact.
    Float(u64),
    Bool(bool),
    Text(String),
    Bytes(Bytes),
    Stack(Vec<[u8; 8]>),
    List(Vec<PlainValue>),
    Map(Vec<(PlainValue, PlainValue)>),
    Unresolved(u32),
}

impl PlainValue {
    pub(crate) fn stack(addresses: &[u64]) -> Self {
        Self::Stack(addresses.iter().map(|address| address.to_le_bytes()).collect())
    }

    pub(crate) fn text(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

/// Passes the event on as an event of the model.
pub(crate) fn with_event<T>(
    tables: &mut Tables,
    plain: &PlainEvent,
    pass: impl FnOnce(&Tables, &Event<'_>) -> T,
) -> T {
    let fields = plain.fields.iter().map(|(name, _)| FieldShape {
        name: tables.intern_string(name).unwrap(),
        kind: FieldKind::Undeclared,
        optional: false,
    });
    let fields = fields.collect();
    let name = tables.intern_string(&plain.name).unwrap();
    let shape = tables.intern_shape(&Shape { name, fields, annotations: Vec::new() }).unwrap();
    let values: Vec<_> = plain.fields.iter().map(|(_, value)| model_value(value)).collect();
    pass(tables, &Event { shape, type_id: plain.type_id, time_ns: plain.time_ns, values: &values })
}

fn model_value(plain: &PlainValue) -> Value<'_> {
    match plain {
        PlainValue::Absent => Value::Absent,
        PlainValue::Unsigned(value) => Value::Unsigned(*value),
        PlainValue::Signed(value) => Value::Signed(*value),
        PlainValue::Float(bits) => Value::Float(f64::from_bits(*bits)),
        PlainValue::Bool(value) => Value::Bool(*value),
        PlainValue::Text(text) => Value::Text(Cow::Borrowed(text)),
        PlainValue::Bytes(bytes) => Value::Bytes(bytes),
        PlainValue::Stack(addresses) => Value::Stack(Addresses(addresses)),
        PlainValue::List(values) => Value::List(values.iter().map(model_value).collect()),
        PlainValue::Map(pairs) => {
            Value::Map(pairs.iter().map(|(key, value)| (model_value(key), model_value(value))).collect())
        }
        PlainValue::Unresolved(id) => Value::Unresolved(*id),
    }
}

pub(crate) fn plain_event(tables: &Tables, event: &Event<'_>) -> PlainEvent {
    let shape = tables.shape(event.shape);
    assert_eq!(shape.fields.len(), event.values.len());
    let fields = shape.fields.iter().zip(event.values);
    PlainEvent {
        name: tables.event_name(event.shape).to_vec(),
        type_id: event.type_id,
        time_ns: event.time_ns,
        fields: fields
            .map(|(field, value)| (tables.string(field.name).to_vec(), plain_value(value)))
            .collect(),
    }
}

fn plain_value(value: &Value<'_>) -> PlainValue {
    match value {
        Value::Absent => PlainValue::Absent,
        Value::Unsigned(value) => PlainValue::Unsigned(*value),
        Value::Signed(value) => PlainValue::Signed(*value),
        Value::Float(value) => PlainValue::Float(value.to_bits()),
        Value::Bool(value) => PlainValue::Bool(*value),
        Value::Text(text) => PlainValue::Text(text.clone().into_owned()),
        Value::Bytes(bytes) => PlainValue::Bytes(bytes.to_vec()),
        Value::Stack(addresses) => PlainValue::Stack(addresses.0.to_vec()),
        Value::List(values) => PlainValue::List(values.iter().map(plain_value).collect()),
        Value::Map(pairs) => {
            PlainValue::Map(pairs.iter().map(|(key, value)| (plain_value(key), plain_value(value))).collect())
        }
        Value::Unresolved(id) => PlainValue::Unresolved(*id),
    }
}
