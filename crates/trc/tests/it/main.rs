//! `trc`, compared with the reference decoder and the specification.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails, in what it calls as well")]

mod allocations;
mod conformance;
mod damage;
mod hostile;
mod importing;
mod interop;
mod musts;
mod page;
mod recovery;
mod samples;
mod stream;
mod typed;
mod writing;

use std::fs;
use std::path::{Path, PathBuf};

use borehole_trc::{Content, Reader};
use borehole_trc::{Error, ReadOptions, Recovery};
use serde_json::{Value, json};

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/trc")
}

fn input(name: &str) -> Vec<u8> {
    fs::read(corpus().join("in").join(name)).unwrap()
}

/// The names of all inputs.
fn names() -> Vec<String> {
    let text = fs::read(corpus().join("MANIFEST.json")).unwrap();
    let manifest: Value = serde_json::from_slice(&text).unwrap();
    let files = manifest["files"].as_array().unwrap();
    files.iter().map(|file| file["file"].as_str().unwrap().strip_prefix("in/").unwrap().to_owned()).collect()
}

/// All frames in the form of the corpus lines, the error at the end, and the recovery.
fn read(bytes: &[u8], options: ReadOptions) -> (Vec<Value>, Option<Error>, Recovery) {
    let mut reader = Reader::with_options(bytes, options);
    let mut lines = Vec::new();
    let error = loop {
        match reader.next_frame() {
            Ok(Some(frame)) => lines.extend(line(&frame.content, lines.is_empty())),
            Ok(None) => break None,
            Err(error) => {
                assert!(matches!(reader.next_frame(), Ok(None)), "the reader continues after an error");
                break Some(error);
            }
        }
    };
    (lines, error, reader.into_recovery())
}

fn line(content: &Content<'_>, is_first: bool) -> Option<Value> {
    Some(match content {
        Content::Header { version } if is_first => json!({"t": "header", "version": version}),
        Content::Schema { schema, .. } => {
            let fields = schema.fields().iter().map(|field| json!([field.name, field.field_type.to_byte()]));
            json!({"t": "schema", "name": schema.name(), "fields": fields.collect::<Vec<_>>()})
        }
        Content::Strings(entries) => {
            let entries = entries.clone().map(|(id, string)| json!([id, text(string)]));
            json!({"t": "strings", "entries": entries.collect::<Vec<_>>()})
        }
        Content::Stacks(entries) => {
            let entries =
                entries.clone().map(|(id, stack)| json!([id, stack.addresses().collect::<Vec<_>>()]));
            json!({"t": "stacks", "entries": entries.collect::<Vec<_>>()})
        }
        Content::Annotations { type_id, annotations } => {
            let entries = annotations.iter().map(|entry| json!([entry.field, entry.key, entry.value]));
            // The reference truncates the id to 16 bits.
            json!({"t": "annotations", "id": type_id & 0xffff, "entries": entries.collect::<Vec<_>>()})
        }
        Content::Event(event) => {
            let values: Vec<_> = event.values().map(value).collect();
            json!({"t": "event", "id": event.type_id(), "name": event.name(), "ts": event.timestamp_ns(), "v": values})
        }
        _ => return None,
    })
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn text(bytes: &[u8]) -> Value {
    match std::str::from_utf8(bytes) {
        Ok(text) => json!(text),
        Err(_) => json!({"hex": hex(bytes)}),
    }
}

fn value(value: borehole_trc::Value<'_>) -> Value {
    use borehole_trc::Value;
    match value {
        Value::Absent => json!(null),
        Value::Unsigned(number) => json!({"uint": number}),
        Value::Signed(number) => json!({"i64": number}),
        Value::Float(number) => json!({"bits": format!("{:016x}", number.to_bits())}),
        Value::Bool(flag) => json!(flag),
        // The reference replaces invalid UTF-8.
        Value::Text(bytes) => json!(String::from_utf8_lossy(bytes)),
        Value::Bytes(bytes) => json!({"bytes": hex(bytes)}),
        Value::Stack(stack) => json!({"stack": stack.addresses().collect::<Vec<_>>()}),
        Value::PooledText { id, text } => json!({"pstr": id, "is": text}),
        Value::PooledStack { id, stack } => {
            json!({"pstack": id, "is": stack.map(|stack| stack.addresses().collect::<Vec<_>>())})
        }
        Value::TextMap(pairs) => {
            json!({"smap": pairs.map(|(key, value)| json!([text(key), text(value)])).collect::<Vec<_>>()})
        }
        Value::List(elements) => json!({"list": elements.map(self::value).collect::<Vec<_>>()}),
        Value::Map(pairs) => {
            let pairs = pairs.map(|(key, value)| json!([self::value(key), self::value(value)]));
            json!({"map": pairs.collect::<Vec<_>>()})
        }
    }
}
