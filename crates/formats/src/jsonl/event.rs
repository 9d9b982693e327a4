//! Lines of type `event`, with their values, and their conversion from and to the model.

use std::borrow::Cow;
use std::fmt;

use borehole_model::{
    Addresses, Event, FieldKind, FieldShape, Shape, ShapeId, StringId, TableFull, Tables, Value,
};
use borehole_text::LineWriter;
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error, MapAccess, Visitor};

use super::read::{TextBytes, decode_hex};

/// Writes the line of an event without its end.
pub(super) fn write_event(line: &mut LineWriter, tables: &Tables, event: &Event<'_>) {
    let shape = tables.shape(event.shape);
    line.raw(r#"{"type":"event","name":"#);
    line.string(tables.string(shape.name));
    for (key, number) in [("type_id", event.type_id.map(u64::from)), ("time_ns", event.time_ns)] {
        if let Some(number) = number {
            line.key(key);
            line.unsigned(number);
        }
    }
    line.key("fields");
    line.begin_array();
    for (field, value) in shape.fields.iter().zip(event.values) {
        write_field(line, tables, field.name, value);
    }
    line.end_array();
}

fn write_field(line: &mut LineWriter, tables: &Tables, name: StringId, value: &Value<'_>) {
    line.begin_array();
    line.string(tables.string(name));
    write_value(line, value);
    line.end_array();
}

/// Writes a value. Its nesting is bounded by the reader of its format.
fn write_value(line: &mut LineWriter, value: &Value<'_>) {
    match value {
        Value::Absent => line.null(),
        Value::Unsigned(value) => line.unsigned(*value),
        Value::Signed(value) => line.integer(*value),
        Value::Float(value) => line.float(*value),
        Value::Bool(value) => line.boolean(*value),
        Value::Text(text) => line.text(text),
        Value::Bytes(bytes) => line.hex("bytes", bytes),
        Value::Stack(addresses) => write_list(line, "stack", addresses.iter(), LineWriter::unsigned),
        Value::List(values) => write_list(line, "list", values.iter(), write_value),
        Value::Map(pairs) => write_list(line, "map", pairs.iter(), |line, (key, value)| {
            line.begin_array();
            write_value(line, key);
            write_value(line, value);
            line.end_array();
        }),
        Value::Unresolved(id) => {
            line.begin_object();
            line.key("unresolved");
            line.unsigned(u64::from(*id));
            line.end_object();
        }
    }
}

/// Writes an object with one key, which is a list.
fn write_list<T>(
    line: &mut LineWriter,
    key: &str,
    items: impl Iterator<Item = T>,
    write: impl Fn(&mut LineWriter, T),
) {
    line.begin_object();
    line.key(key);
    line.begin_array();
    items.for_each(|item| write(line, item));
    line.end_array();
    line.end_object();
}

/// The shape that the event of a line shares with others. Lines declare no kinds.
pub(super) fn intern_shape(tables: &mut Tables, line: &EventLine<'_>) -> Result<ShapeId, TableFull> {
    let fields = line.fields.iter().map(|(name, _)| {
        let name = tables.intern_string(&name.0)?;
        Ok(FieldShape { name, kind: FieldKind::Undeclared, optional: false })
    });
    let fields = fields.collect::<Result<_, TableFull>>()?;
    let name = tables.intern_string(&line.name.0)?;
    tables.intern_shape(&Shape { name, fields, annotations: Vec::new() })
}

/// The values of a line.
pub(super) fn values<'a>(line: &'a EventLine<'_>) -> Vec<Value<'a>> {
    line.fields.iter().map(|(_, value)| model_value(value)).collect()
}

/// Converts a value to the model's form. The JSON parser bounds its nesting.
fn model_value<'a>(value: &'a ValueObject<'_>) -> Value<'a> {
    match value {
        ValueObject::Absent => Value::Absent,
        ValueObject::Unsigned(value) => Value::Unsigned(*value),
        ValueObject::Signed(value) => Value::Signed(*value),
        ValueObject::Float(value) => Value::Float(*value),
        ValueObject::Bool(value) => Value::Bool(*value),
        ValueObject::Text(text) => Value::Text(Cow::Borrowed(text)),
        ValueObject::Bytes(bytes) => Value::Bytes(bytes),
        ValueObject::Stack(addresses) => Value::Stack(Addresses(addresses)),
        ValueObject::List(values) => Value::List(values.iter().map(model_value).collect()),
        ValueObject::Map(pairs) => {
            Value::Map(pairs.iter().map(|(key, value)| (model_value(key), model_value(value))).collect())
        }
        ValueObject::Unresolved(id) => Value::Unresolved(*id),
    }
}

#[derive(Deserialize)]
pub(super) struct EventLine<'a> {
    #[serde(borrow)]
    pub(super) name: TextBytes<'a>,
    pub(super) type_id: Option<u32>,
    pub(super) time_ns: Option<u64>,
    #[serde(borrow, default)]
    pub(super) fields: Vec<(TextBytes<'a>, ValueObject<'a>)>,
}

/// The value of a field.
pub(super) enum ValueObject<'a> {
    Absent,
    Unsigned(u64),
    Signed(i64),
    Float(f64),
    Bool(bool),
    Text(Cow<'a, str>),
    Bytes(Vec<u8>),
    /// Addresses of eight bytes each, the least significant byte first.
    Stack(Vec<[u8; 8]>),
    List(Vec<ValueObject<'a>>),
    Map(Vec<(ValueObject<'a>, ValueObject<'a>)>),
    Unresolved(u32),
}

impl<'de: 'a, 'a> Deserialize<'de> for ValueObject<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ValueVisitor)
    }
}

struct ValueVisitor;

/// An object that represents a value: it has one of these keys.
#[derive(Deserialize)]
struct TaggedObject<'a> {
    #[serde(borrow)]
    bytes: Option<Cow<'a, str>>,
    stack: Option<Vec<u64>>,
    #[serde(borrow)]
    list: Option<Vec<ValueObject<'a>>>,
    #[serde(borrow)]
    map: Option<Vec<(ValueObject<'a>, ValueObject<'a>)>>,
    #[serde(borrow)]
    f64: Option<Cow<'a, str>>,
    unresolved: Option<u32>,
}

impl<'de> Visitor<'de> for ValueVisitor {
    type Value = ValueObject<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number, a string, a truth value, null, or an object that stands for a value")
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(ValueObject::Absent)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Self::Value, E> {
        Ok(ValueObject::Bool(value))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Self::Value, E> {
        Ok(ValueObject::Unsigned(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Self::Value, E> {
        Ok(ValueObject::Signed(value))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Self::Value, E> {
        Ok(ValueObject::Float(value))
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(ValueObject::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(ValueObject::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        let object = TaggedObject::deserialize(MapAccessDeserializer::new(map))?;
        let TaggedObject { bytes, stack, list, map, f64, unresolved } = object;
        let values = [
            bytes.map(|digits| decode_hex(&digits).map(ValueObject::Bytes)).transpose()?,
            stack.map(|addresses| ValueObject::Stack(addresses.into_iter().map(u64::to_le_bytes).collect())),
            list.map(ValueObject::List),
            map.map(ValueObject::Map),
            f64.map(|name| float(&name)).transpose()?,
            unresolved.map(ValueObject::Unresolved),
        ];
        let mut values = values.into_iter().flatten();
        match (values.next(), values.next()) {
            (Some(value), None) => Ok(value),
            _ => {
                Err(A::Error::custom("expected one of the keys bytes, stack, list, map, f64 and unresolved"))
            }
        }
    }
}

fn float<E: Error>(name: &str) -> Result<ValueObject<'static>, E> {
    Ok(ValueObject::Float(match name {
        "NaN" => f64::NAN,
        "Infinity" => f64::INFINITY,
        "-Infinity" => f64::NEG_INFINITY,
        _ => return Err(E::custom("expected one of NaN, Infinity and -Infinity")),
    }))
}
