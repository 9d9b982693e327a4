//! Events as bytes, while they wait.

use std::borrow::Cow;
use std::io;

use borehole_model::{Addresses, Event, ShapeId, Value};

/// The rest of an event's bytes, read from the front.
pub(super) struct EventBytes<'a>(pub(super) &'a [u8]);

impl<'a> EventBytes<'a> {
    fn take(&mut self, count: usize) -> io::Result<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(io::ErrorKind::UnexpectedEof)?;
        self.0 = rest;
        Ok(taken)
    }

    pub(super) fn number(&mut self) -> io::Result<u64> {
        let (bytes, rest) = self.0.split_first_chunk().ok_or(io::ErrorKind::UnexpectedEof)?;
        self.0 = rest;
        Ok(u64::from_le_bytes(*bytes))
    }

    pub(super) fn length(&mut self) -> io::Result<usize> {
        usize::try_from(self.number()?).map_err(io::Error::other)
    }

    fn byte(&mut self) -> io::Result<u8> {
        Ok(self.take(1)?[0])
    }
}

pub(super) fn put(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(&number.to_le_bytes());
}

/// The kinds of values.
mod tag {
    pub(super) const ABSENT: u8 = 0;
    pub(super) const UNSIGNED: u8 = 1;
    pub(super) const SIGNED: u8 = 2;
    pub(super) const FLOAT: u8 = 3;
    pub(super) const BOOL: u8 = 4;
    pub(super) const TEXT: u8 = 5;
    pub(super) const BYTES: u8 = 6;
    pub(super) const STACK: u8 = 7;
    pub(super) const LIST: u8 = 8;
    pub(super) const MAP: u8 = 9;
    pub(super) const UNRESOLVED: u8 = 10;
}

/// Appends an event without its time.
pub(super) fn encode(out: &mut Vec<u8>, event: &Event<'_>) {
    put(out, event.shape.index() as u64);
    put(out, event.type_id.map_or(u64::MAX, u64::from));
    put(out, event.values.len() as u64);
    event.values.iter().for_each(|value| encode_value(out, value));
}

/// Appends a value. Values nest only as deep as readers allow.
fn encode_value(out: &mut Vec<u8>, value: &Value<'_>) {
    let tagged = |out: &mut Vec<u8>, tag: u8, number: u64| {
        out.push(tag);
        put(out, number);
    };
    match value {
        Value::Absent => out.push(tag::ABSENT),
        Value::Unsigned(number) => tagged(out, tag::UNSIGNED, *number),
        Value::Signed(number) => tagged(out, tag::SIGNED, number.cast_unsigned()),
        Value::Float(number) => tagged(out, tag::FLOAT, number.to_bits()),
        Value::Bool(truth) => tagged(out, tag::BOOL, u64::from(*truth)),
        Value::Unresolved(id) => tagged(out, tag::UNRESOLVED, u64::from(*id)),
        Value::Text(text) => {
            tagged(out, tag::TEXT, text.len() as u64);
            out.extend_from_slice(text.as_bytes());
        }
        Value::Bytes(bytes) => {
            tagged(out, tag::BYTES, bytes.len() as u64);
            out.extend_from_slice(bytes);
        }
        Value::Stack(addresses) => {
            tagged(out, tag::STACK, addresses.len() as u64);
            out.extend_from_slice(addresses.0.as_flattened());
        }
        Value::List(values) => {
            tagged(out, tag::LIST, values.len() as u64);
            values.iter().for_each(|value| encode_value(out, value));
        }
        Value::Map(pairs) => {
            tagged(out, tag::MAP, pairs.len() as u64);
            for (key, value) in pairs {
                encode_value(out, key);
                encode_value(out, value);
            }
        }
    }
}

/// Decodes an event that [`encode`] wrote. `shapes` are the shapes by index.
pub(super) fn decode<'a>(
    bytes: &'a [u8],
    time_ns: Option<u64>,
    shapes: &[ShapeId],
    values: &'a mut Vec<Value<'a>>,
) -> io::Result<Event<'a>> {
    let mut bytes = EventBytes(bytes);
    let shape = shapes.get(bytes.length()?).copied();
    let shape = shape.ok_or_else(|| io::Error::other("an event that waited has no shape"))?;
    let type_id = u32::try_from(bytes.number()?).ok();
    for _ in 0..bytes.number()? {
        values.push(decode_value(&mut bytes)?);
    }
    Ok(Event { shape, type_id, time_ns, values })
}

fn decode_value<'a>(bytes: &mut EventBytes<'a>) -> io::Result<Value<'a>> {
    Ok(match bytes.byte()? {
        tag::ABSENT => Value::Absent,
        tag::UNSIGNED => Value::Unsigned(bytes.number()?),
        tag::SIGNED => Value::Signed(bytes.number()?.cast_signed()),
        tag::FLOAT => Value::Float(f64::from_bits(bytes.number()?)),
        tag::BOOL => Value::Bool(bytes.number()? > 0),
        tag::UNRESOLVED => Value::Unresolved(u32::try_from(bytes.number()?).map_err(io::Error::other)?),
        tag::TEXT => {
            let length = bytes.length()?;
            let text = std::str::from_utf8(bytes.take(length)?).map_err(io::Error::other)?;
            Value::Text(Cow::Borrowed(text))
        }
        tag::BYTES => {
            let length = bytes.length()?;
            Value::Bytes(bytes.take(length)?)
        }
        tag::STACK => {
            let length = bytes.length()?.saturating_mul(8);
            Value::Stack(Addresses(bytes.take(length)?.as_chunks().0))
        }
        tag::LIST => {
            let count = bytes.number()?;
            Value::List((0..count).map(|_| decode_value(bytes)).collect::<io::Result<_>>()?)
        }
        _ => {
            let count = bytes.number()?;
            let pairs = (0..count).map(|_| Ok((decode_value(bytes)?, decode_value(bytes)?)));
            Value::Map(pairs.collect::<io::Result<_>>()?)
        }
    })
}

#[cfg(test)]
mod tests {
    use borehole_model::{Shape, Tables};

    use super::*;

    #[test]
    fn every_value_comes_back_as_it_was() {
        let mut tables = Tables::default();
        let name = tables.intern_string(b"all").unwrap();
        let shape =
            tables.intern_shape(&Shape { name, fields: Vec::new(), annotations: Vec::new() }).unwrap();
        let addresses = [[1; 8], [2; 8]];
        let values = [
            Value::Absent,
            Value::Unsigned(u64::MAX),
            Value::Signed(-1),
            Value::Float(-0.5),
            Value::Bool(true),
            Value::Text("é".into()),
            Value::Bytes(b"\xff"),
            Value::Stack(Addresses(&addresses)),
            Value::List(vec![Value::Map(vec![(Value::Signed(3), Value::List(Vec::new()))])]),
            Value::Unresolved(7),
        ];
        let event = Event { shape, type_id: Some(9), time_ns: Some(4), values: &values };
        let mut bytes = Vec::new();
        encode(&mut bytes, &event);
        assert_eq!(decode(&bytes, Some(4), &[shape], &mut Vec::new()).unwrap(), event);
        assert!(decode(&bytes[..bytes.len() - 1], None, &[shape], &mut Vec::new()).is_err());
    }
}
