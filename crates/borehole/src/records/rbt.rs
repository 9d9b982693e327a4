//! The events of `rbt` files.

use std::collections::BTreeMap;
use std::io::{Read, Write};

use borehole_formats::jsonl::LineWriter;
use borehole_formats::rbt::{DecodedEvent, EventReader, FrameFields, RawEvent, RawRecord, Varints};
use borehole_formats::{ReadError, ReadOptions, Recovery};

use super::begin;

/// Writes every header and event. Returns warnings and losses.
pub(super) fn dump(input: impl Read, mut output: impl Write) -> Result<Recovery, ReadError> {
    let mut events = EventReader::new(input, ReadOptions::default());
    let mut line = LineWriter::default();
    let mut has_timestamps = false;
    while let Some(record) = events.next_record()? {
        line.clear();
        match record {
            RawRecord::Header { header, offset } => {
                has_timestamps = header.has_timestamps;
                begin(&mut line, "HEADER", offset);
                line.key("has_timestamps");
                line.boolean(header.has_timestamps);
                line.key("period_us");
                line.unsigned(u64::from(header.period_us));
            }
            RawRecord::Event(raw) => event(&mut line, &raw, has_timestamps),
        }
        line.end_object();
        line.end_line();
        output.write_all(line.bytes())?;
    }
    output.flush()?;
    let mut recovery = Recovery::default();
    events.take_warnings().into_iter().for_each(|warning| recovery.warn(warning));
    events.padding().into_iter().for_each(|note| recovery.note(note));
    Ok(recovery)
}

fn event(line: &mut LineWriter, raw: &RawEvent<'_>, has_timestamps: bool) {
    let known = raw.event_type();
    begin(line, known.map_or("UNKNOWN", |known| known.name()), raw.offset);
    match DecodedEvent::decode(raw, has_timestamps) {
        Ok(event) => fields(line, &event, raw),
        Err(error) => {
            line.key("error");
            line.text(&error.to_string());
            payload(line, raw);
        }
    }
}

fn fields(line: &mut LineWriter, event: &DecodedEvent<'_>, raw: &RawEvent<'_>) {
    match event {
        DecodedEvent::StringDef { id, string } => {
            number(line, "id", *id);
            line.key("string");
            line.string(string);
        }
        DecodedEvent::FrameDef { id, frame } => {
            number(line, "id", *id);
            frame_fields(line, frame);
        }
        DecodedEvent::StackDef { id, frames_leaf_first } => {
            number(line, "id", *id);
            numbers(line, "frames", *frames_leaf_first);
        }
        DecodedEvent::Sample { stack, pid, delta_us } => {
            number(line, "stack", *stack);
            optional(line, "pid", *pid);
            optional(line, "delta_us", *delta_us);
        }
        DecodedEvent::Repeat { count } => number(line, "count", *count),
        DecodedEvent::Annotation { pairs } => numbers(line, "pairs", *pairs),
        DecodedEvent::Checkpoint { counts } => match counts {
            Some([frames, stacks, samples]) => {
                number(line, "frames", *frames);
                number(line, "stacks", *stacks);
                number(line, "samples", *samples);
            }
            None => payload(line, raw),
        },
        DecodedEvent::Metadata { key, value } => {
            line.key("key");
            line.string(key);
            line.key("value");
            line.string(value);
        }
        DecodedEvent::SegmentEnd => {}
        DecodedEvent::Unknown { type_byte } => {
            number(line, "event_type", i64::from(*type_byte));
            payload(line, raw);
        }
    }
}

fn frame_fields(line: &mut LineWriter, frame: &FrameFields) {
    match *frame {
        FrameFields::Php { namespace, class, method, file, line: number_of_line, opcode } => {
            number(line, "namespace", namespace);
            number(line, "class", class);
            number(line, "method", method);
            number(line, "file", file);
            number(line, "line", number_of_line);
            optional(line, "opcode", opcode);
        }
        FrameFields::Native { symbol, module, offset } => {
            number(line, "symbol", symbol);
            number(line, "module", module);
            number(line, "symbol_offset", offset);
        }
    }
}

fn number(line: &mut LineWriter, key: &str, value: i64) {
    line.key(key);
    line.integer(value);
}

fn optional(line: &mut LineWriter, key: &str, value: Option<i64>) {
    if let Some(value) = value {
        number(line, key, value);
    }
}

fn numbers(line: &mut LineWriter, key: &str, values: Varints<'_>) {
    line.key(key);
    line.begin_array();
    for value in values {
        line.integer(value);
    }
    line.end_array();
}

fn payload(line: &mut LineWriter, raw: &RawEvent<'_>) {
    line.key("payload");
    line.hex("bytes", raw.payload.rest());
}

/// Counts the records of each type, by name, up to the first that is damaged.
pub(super) fn count(input: impl Read) -> BTreeMap<&'static str, u64> {
    let mut counts = BTreeMap::new();
    let mut events = EventReader::new(input, ReadOptions::default());
    while let Ok(Some(record)) = events.next_record() {
        let name = match record {
            RawRecord::Header { .. } => "HEADER",
            RawRecord::Event(raw) => raw.event_type().map_or("UNKNOWN", |known| known.name()),
        };
        *counts.entry(name).or_insert(0) += 1;
    }
    counts
}
