//! The frames of `trc` streams.

use std::collections::BTreeMap;
use std::io::{Read, Write};

use borehole_formats::jsonl::LineWriter;
use borehole_formats::trc::{Annotation, Content, Event, Frame, Reader, Schema, Value};
use borehole_formats::{ReadError, Recovery};

use super::begin;

/// Writes every frame. Returns warnings and losses.
pub(super) fn dump(input: impl Read, mut output: impl Write) -> Result<Recovery, ReadError> {
    let mut reader = Reader::new(input);
    let mut line = LineWriter::default();
    while let Some(frame) = reader.next_frame()? {
        line.clear();
        write_frame(&mut line, &frame);
        output.write_all(line.bytes())?;
    }
    output.flush()?;
    Ok(reader.into_recovery())
}

/// Counts the frames of each kind, by name, up to the first that is damaged.
pub(super) fn count(input: impl Read) -> BTreeMap<&'static str, u64> {
    let mut counts = BTreeMap::new();
    let mut reader = Reader::new(input);
    while let Ok(Some(frame)) = reader.next_frame() {
        *counts.entry(name(&frame.content)).or_insert(0) += 1;
    }
    counts
}

const fn name(content: &Content<'_>) -> &'static str {
    match content {
        Content::Header { .. } => "HEADER",
        Content::Schema { .. } => "SCHEMA",
        Content::Event(_) => "EVENT",
        Content::Strings(_) => "STRING_POOL",
        Content::Stacks(_) => "STACK_POOL",
        Content::Reset { .. } => "TIMESTAMP_RESET",
        Content::Annotations { .. } => "SCHEMA_ANNOTATIONS",
        _ => "UNKNOWN",
    }
}

fn write_frame(line: &mut LineWriter, frame: &Frame<'_>) {
    begin(line, name(&frame.content), frame.offset);
    number(line, "bytes", frame.bytes.len() as u64);
    match &frame.content {
        Content::Header { version } => number(line, "version", u64::from(*version)),
        Content::Schema { type_id, schema } => write_schema(line, *type_id, schema),
        Content::Event(event) => write_event(line, event),
        Content::Reset { timestamp_ns } => number(line, "timestamp_ns", *timestamp_ns),
        Content::Annotations { type_id, annotations } => {
            number(line, "type_id", *type_id);
            write_list(line, "annotations", annotations.iter(), write_annotation);
        }
        Content::Strings(entries) => write_list(line, "entries", entries.clone(), |line, (id, string)| {
            line.begin_array();
            line.unsigned(u64::from(id));
            line.string(string);
            line.end_array();
        }),
        Content::Stacks(entries) => write_list(line, "entries", entries.clone(), |line, (id, stack)| {
            line.begin_array();
            line.unsigned(u64::from(id));
            write_items(line, stack.addresses(), LineWriter::unsigned);
            line.end_array();
        }),
        _ => {}
    }
    line.end_object();
    line.end_line();
}

fn number(line: &mut LineWriter, key: &str, value: u64) {
    line.key(key);
    line.unsigned(value);
}

fn write_schema(line: &mut LineWriter, type_id: u16, schema: &Schema) {
    number(line, "type_id", u64::from(type_id));
    line.key("name");
    line.text(schema.name());
    line.key("has_timestamp");
    line.boolean(schema.has_timestamp());
    write_list(line, "fields", schema.fields().iter(), |line, field| {
        line.begin_array();
        line.text(&field.name);
        line.text(field.field_type.kind.name());
        line.boolean(field.field_type.optional);
        line.end_array();
    });
}

fn write_annotation(line: &mut LineWriter, annotation: &Annotation) {
    line.begin_array();
    line.unsigned(u64::from(annotation.field));
    line.text(&annotation.key);
    line.text(&annotation.value);
    line.end_array();
}

fn write_event(line: &mut LineWriter, event: &Event<'_>) {
    number(line, "type_id", u64::from(event.type_id()));
    if let Some(timestamp_ns) = event.timestamp_ns() {
        number(line, "timestamp_ns", timestamp_ns);
    }
    write_list(line, "values", event.values(), write_value);
}

/// Writes a value; pool values are written as their entry numbers. Lists nest as deep as the reader allows.
fn write_value(line: &mut LineWriter, value: Value<'_>) {
    match value {
        Value::Absent => line.null(),
        Value::Unsigned(value) => line.unsigned(value),
        Value::Signed(value) => line.integer(value),
        Value::Float(value) => line.float(value),
        Value::Bool(value) => line.boolean(value),
        Value::Text(text) => line.string(text),
        Value::Bytes(bytes) => line.hex("bytes", bytes),
        Value::Stack(stack) => write_object(line, "stack", stack.addresses(), LineWriter::unsigned),
        Value::PooledText { id, .. } => write_reference(line, "string", id),
        Value::PooledStack { id, .. } => write_reference(line, "stack_id", id),
        Value::TextMap(pairs) => write_object(line, "map", pairs, |line, (key, value)| {
            line.begin_array();
            line.string(key);
            line.string(value);
            line.end_array();
        }),
        Value::List(elements) => write_object(line, "list", elements, write_value),
        Value::Map(pairs) => write_object(line, "map", pairs, |line, (key, value)| {
            line.begin_array();
            write_value(line, key);
            write_value(line, value);
            line.end_array();
        }),
    }
}

fn write_reference(line: &mut LineWriter, key: &str, id: u32) {
    line.begin_object();
    number(line, key, u64::from(id));
    line.end_object();
}

fn write_object<T>(
    line: &mut LineWriter,
    key: &str,
    items: impl Iterator<Item = T>,
    write: impl Fn(&mut LineWriter, T),
) {
    line.begin_object();
    write_list(line, key, items, write);
    line.end_object();
}

fn write_list<T>(
    line: &mut LineWriter,
    key: &str,
    items: impl Iterator<Item = T>,
    write: impl Fn(&mut LineWriter, T),
) {
    line.key(key);
    write_items(line, items, write);
}

fn write_items<T>(line: &mut LineWriter, items: impl Iterator<Item = T>, write: impl Fn(&mut LineWriter, T)) {
    line.begin_array();
    items.for_each(|item| write(line, item));
    line.end_array();
}
