//! Converts events between the model and lines.

use std::borrow::Cow;

use borehole_model::{
    Addresses, Event, FieldKind, FieldShape, Shape, ShapeId, StringId, TableFull, Tables, Value,
};

use super::value::{EventLine, ValueObject};
use super::write::LineWriter;

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
