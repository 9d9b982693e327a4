//! Parses one line to a value that borrows from the line if possible.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error, MapAccess, Visitor};

use super::event::EventLine;
use crate::lines::json::line_type;

/// A line, by its type. Unknown types are `Other`.
pub(super) enum JsonLine<'a> {
    File(FileLine<'a>),
    Segment(SegmentLine<'a>),
    Metadata(MetadataLine<'a>),
    Thread(ThreadLine<'a>),
    Input(InputLine<'a>),
    Stack(StackLine<'a>),
    Sample(SampleLine<'a>),
    Event(EventLine<'a>),
    End(EndLine<'a>),
    Other,
}

/// Parses one line.
pub(super) fn parse_line(line: &[u8]) -> Result<JsonLine<'_>, serde_json::Error> {
    Ok(match &*line_type(line)? {
        "file" => JsonLine::File(serde_json::from_slice(line)?),
        "segment" => JsonLine::Segment(serde_json::from_slice(line)?),
        "metadata" => JsonLine::Metadata(serde_json::from_slice(line)?),
        "thread" => JsonLine::Thread(serde_json::from_slice(line)?),
        "input" => JsonLine::Input(serde_json::from_slice(line)?),
        "stack" => JsonLine::Stack(serde_json::from_slice(line)?),
        "sample" => JsonLine::Sample(serde_json::from_slice(line)?),
        "event" => JsonLine::Event(serde_json::from_slice(line)?),
        "end" => JsonLine::End(serde_json::from_slice(line)?),
        _ => JsonLine::Other,
    })
}

/// A line of type `file`. Its other keys repeat those of the first segment.
#[derive(Deserialize)]
pub(super) struct FileLine<'a> {
    pub(super) schema_version: u64,
    #[serde(borrow)]
    pub(super) format: Option<Cow<'a, str>>,
}

#[derive(Default, Deserialize)]
pub(super) struct SegmentLine<'a> {
    #[serde(default)]
    pub(super) index: u64,
    pub(super) offset: Option<u64>,
    #[serde(borrow)]
    pub(super) format: Option<Cow<'a, str>>,
    pub(super) period_us: Option<u64>,
    pub(super) period_ns: Option<u64>,
    #[serde(default)]
    pub(super) has_times: bool,
    #[serde(default)]
    pub(super) is_ordered: bool,
    pub(super) pid: Option<i64>,
    /// Replaces `pid`, for a process whose number is not the operating system's.
    #[serde(borrow)]
    pub(super) process: Option<Cow<'a, str>>,
    pub(super) start_unix_ns: Option<i64>,
    pub(super) began_ns: Option<i64>,
    pub(super) depth_limit: Option<u32>,
    #[serde(borrow, default)]
    pub(super) metadata: Vec<(TextBytes<'a>, TextBytes<'a>)>,
    #[serde(borrow)]
    pub(super) mode: Option<Cow<'a, str>>,
    #[serde(default)]
    pub(super) value_types: Vec<(String, String)>,
    pub(super) default_value: Option<DefaultValue>,
    #[serde(default)]
    pub(super) is_uncounted: bool,
}

/// The source's default measure: one of the values, 0-based, or another.
#[derive(Clone, Copy, Deserialize)]
#[serde(untagged)]
pub(super) enum DefaultValue {
    Value(usize),
    Other(OtherValue),
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum OtherValue {
    Count,
    Time,
}

#[derive(Deserialize)]
pub(super) struct MetadataLine<'a> {
    #[serde(borrow)]
    pub(super) key: TextBytes<'a>,
    #[serde(borrow)]
    pub(super) value: TextBytes<'a>,
}

#[derive(Deserialize)]
pub(super) struct ThreadLine<'a> {
    #[serde(default)]
    pub(super) pid: Option<i64>,
    /// Replaces `pid`, for a process whose number is not the operating system's.
    #[serde(borrow)]
    pub(super) process: Option<Cow<'a, str>>,
    pub(super) tid: Option<u64>,
    /// Replaces `tid`, for a thread whose number is not the operating system's.
    #[serde(borrow)]
    pub(super) thread: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(super) name: TextBytes<'a>,
}

/// Names the input of the following lines, which is kept apart from others.
#[derive(Deserialize)]
pub(super) struct InputLine<'a> {
    #[serde(borrow)]
    pub(super) name: Cow<'a, str>,
}

#[derive(Deserialize)]
pub(super) struct StackLine<'a> {
    pub(super) id: u64,
    #[serde(borrow)]
    pub(super) frames: Vec<FrameObject<'a>>,
}

#[derive(Deserialize)]
pub(super) struct FrameObject<'a> {
    #[serde(borrow)]
    pub(super) function: TextBytes<'a>,
    pub(super) parts: Option<bool>,
    #[serde(borrow)]
    pub(super) namespace: Option<TextBytes<'a>>,
    #[serde(borrow)]
    pub(super) class: Option<TextBytes<'a>>,
    #[serde(borrow)]
    pub(super) method: Option<TextBytes<'a>>,
    #[serde(borrow)]
    pub(super) file: Option<TextBytes<'a>>,
    pub(super) line: Option<i64>,
    pub(super) end_line: Option<i64>,
    pub(super) column: Option<u32>,
    pub(super) end_column: Option<u32>,
    #[serde(borrow)]
    pub(super) opcode: Option<TextBytes<'a>>,
    #[serde(default)]
    pub(super) native: bool,
    #[serde(borrow)]
    pub(super) module: Option<TextBytes<'a>>,
    pub(super) offset: Option<i64>,
}

#[derive(Deserialize)]
pub(super) struct SampleLine<'a> {
    pub(super) stack: Option<u64>,
    #[serde(borrow)]
    pub(super) frames: Option<Vec<FrameObject<'a>>>,
    #[serde(default = "one")]
    pub(super) count: u64,
    pub(super) delta_us: Option<i64>,
    pub(super) time_ns: Option<i64>,
    /// `Some(None)` if the line states that it is unknown.
    #[serde(default, deserialize_with = "stated")]
    pub(super) pid: Option<Option<i64>>,
    /// Replaces `pid`, for a process whose number is not the operating system's.
    #[serde(borrow)]
    pub(super) process: Option<Cow<'a, str>>,
    pub(super) tid: Option<u64>,
    /// Replaces `tid`, for a thread whose number is not the operating system's.
    #[serde(borrow)]
    pub(super) thread: Option<Cow<'a, str>>,
    pub(super) interpreter: Option<u64>,
    #[serde(borrow)]
    pub(super) status: Option<Vec<TextBytes<'a>>>,
    #[serde(borrow)]
    pub(super) labels: Option<Vec<(TextBytes<'a>, LabelObject<'a>)>>,
    #[serde(default)]
    pub(super) values: Vec<i64>,
}

/// Deserializes the value of a present key; the default stands for an absent one.
fn stated<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Option<i64>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

const fn one() -> u64 {
    1
}

#[derive(Deserialize)]
pub(super) struct EndLine<'a> {
    pub(super) samples: Option<u64>,
    pub(super) events: Option<u64>,
    #[serde(default)]
    pub(super) lost_bytes: u64,
    #[serde(borrow, default)]
    pub(super) warnings: Vec<WarningObject<'a>>,
    #[serde(default)]
    pub(super) more_warnings: u64,
}

#[derive(Deserialize)]
pub(super) struct WarningObject<'a> {
    pub(super) offset: Option<u64>,
    #[serde(borrow)]
    pub(super) message: Cow<'a, str>,
    #[serde(default)]
    pub(super) lost_bytes: u64,
    pub(super) saved_samples: Option<u64>,
}

/// A string of the profile: JSON text, or `{"hex":"…"}`.
pub(super) struct TextBytes<'a>(pub(super) Cow<'a, [u8]>);

impl<'de: 'a, 'a> Deserialize<'de> for TextBytes<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextVisitor)
    }
}

struct TextVisitor;

#[derive(Deserialize)]
struct HexObject<'a> {
    #[serde(borrow)]
    hex: Cow<'a, str>,
}

impl<'de> Visitor<'de> for TextVisitor {
    type Value = TextBytes<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string or {\"hex\":\"…\"}")
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(TextBytes(Cow::Borrowed(text.as_bytes())))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(TextBytes(Cow::Owned(text.as_bytes().to_vec())))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        let object = HexObject::deserialize(MapAccessDeserializer::new(map))?;
        decode_hex(&object.hex).map(|bytes| TextBytes(Cow::Owned(bytes)))
    }
}

/// The value of a label.
pub(super) enum LabelObject<'a> {
    Text(TextBytes<'a>),
    Number { value: i64, unit: Option<TextBytes<'a>> },
}

impl<'de: 'a, 'a> Deserialize<'de> for LabelObject<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(LabelVisitor)
    }
}

struct LabelVisitor;

#[derive(Deserialize)]
struct HexOrNumber<'a> {
    #[serde(borrow)]
    hex: Option<Cow<'a, str>>,
    number: Option<i64>,
    #[serde(borrow)]
    unit: Option<TextBytes<'a>>,
}

impl<'de> Visitor<'de> for LabelVisitor {
    type Value = LabelObject<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string, {\"hex\":\"…\"} or {\"number\":…}")
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
        TextVisitor.visit_borrowed_str(text).map(LabelObject::Text)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        TextVisitor.visit_str(text).map(LabelObject::Text)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        let object = HexOrNumber::deserialize(MapAccessDeserializer::new(map))?;
        match (object.hex, object.number) {
            (Some(hex), None) => {
                decode_hex(&hex).map(|bytes| LabelObject::Text(TextBytes(Cow::Owned(bytes))))
            }
            (None, Some(value)) => Ok(LabelObject::Number { value, unit: object.unit }),
            _ => Err(A::Error::custom("expected one of the keys hex and number")),
        }
    }
}

pub(super) fn decode_hex<E: Error>(digits: &str) -> Result<Vec<u8>, E> {
    let (pairs, rest) = digits.as_bytes().as_chunks::<2>();
    let bytes: Option<Vec<u8>> =
        pairs.iter().map(|&[high, low]| Some(digit(high)? << 4 | digit(low)?)).collect();
    bytes.filter(|_| rest.is_empty()).ok_or_else(|| E::custom("expected pairs of hexadecimal digits"))
}

const fn digit(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        b'A'..=b'F' => Some(byte - b'A' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde::de::value::Error;

    use super::*;

    #[test]
    fn hexadecimal_digits_are_read_in_either_case() {
        let decode = |digits| decode_hex::<Error>(digits).map_err(|error| error.to_string());
        assert_eq!(decode("00099a9f0aAfFa"), Ok(vec![0x00, 0x09, 0x9a, 0x9f, 0x0a, 0xaf, 0xfa]));
        assert_eq!(decode("ABCDEFabcdef"), Ok(vec![0xab, 0xcd, 0xef, 0xab, 0xcd, 0xef]));
        assert_eq!(decode(""), Ok(vec![]));
        for wrong in ["a", "abc", "0g", "g0", "0G", "0/", "0:", "0@", "0`", " 0"] {
            assert_eq!(decode(wrong), Err("expected pairs of hexadecimal digits".to_owned()), "{wrong}");
        }
    }
}
