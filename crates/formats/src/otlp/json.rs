//! JSON documents, converted to the equivalent binary ones.
//!
//! Names are those of the messages in either spelling, numbers may be texts, ids are hexadecimal digits or base64, and
//! unknown fields are skipped.
//!
//! Source: protobuf.dev, "ProtoJSON Format"; the OTLP specification, "JSON Protobuf Encoding" (hexadecimal ids); what
//! the file exporter of OpenTelemetry's collector writes (base64 ids).

use std::fmt;

use borehole_memory::HeldBytes as _;
use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::layout::{
    any, attribute, data, dictionary, key_value, link, location as own, profile, resource, sample, scope,
    stack,
};
use super::read::OLDER;
use crate::documents::json::JsonMemory;
use crate::documents::protobuf::{put_bytes, put_fixed64, put_number, put_tag, wire};
use crate::symbols::layout::{function, line, location, mapping, value_type};

/// A field of a message.
#[derive(Debug)]
struct JsonField {
    name: &'static str,
    number: u32,
    kind: JsonKind,
}

/// The type of a field, which may be repeated.
#[derive(Clone, Copy, Debug)]
enum JsonKind {
    Message(&'static [JsonField]),
    Text,
    Bytes,
    Number,
    Fixed64,
    Double,
    Bool,
    /// A field of older releases, whose other fields have other meanings.
    Older,
}

const fn field(name: &'static str, number: u32, kind: JsonKind) -> JsonField {
    JsonField { name, number, kind }
}

use JsonKind::{Bool, Bytes, Double, Fixed64, Message, Number, Older, Text};

static DATA: [JsonField; 2] = [
    field("resourceProfiles", data::RESOURCE_PROFILES, Message(&RESOURCE_PROFILES)),
    field("dictionary", data::DICTIONARY, Message(&DICTIONARY)),
];
static RESOURCE_PROFILES: [JsonField; 2] = [
    field("resource", resource::RESOURCE, Message(&RESOURCE)),
    field("scopeProfiles", resource::SCOPE_PROFILES, Message(&SCOPE_PROFILES)),
];
static RESOURCE: [JsonField; 1] = [field("attributes", resource::ATTRIBUTES, Message(&KEY_VALUE))];
static SCOPE_PROFILES: [JsonField; 2] =
    [field("scope", scope::SCOPE, Message(&SCOPE)), field("profiles", scope::PROFILES, Message(&PROFILE))];
static SCOPE: [JsonField; 2] = [field("name", scope::NAME, Text), field("version", scope::VERSION, Text)];
static PROFILE: [JsonField; 11] = [
    field("sampleType", profile::SAMPLE_TYPE, Message(&VALUE_TYPE)),
    field("samples", profile::SAMPLES, Message(&SAMPLE)),
    field("timeUnixNano", profile::TIME_UNIX_NANO, Fixed64),
    field("durationNano", profile::DURATION_NANO, Number),
    field("periodType", profile::PERIOD_TYPE, Message(&VALUE_TYPE)),
    field("period", profile::PERIOD, Number),
    field("attributeIndices", profile::ATTRIBUTE_INDICES, Number),
    field("sample", 0, Older),
    field("stringTable", 0, Older),
    field("locationIndices", 0, Older),
    field("startTimeUnixNano", 0, Older),
];
static VALUE_TYPE: [JsonField; 2] =
    [field("typeStrindex", value_type::TYPE, Number), field("unitStrindex", value_type::UNIT, Number)];
static SAMPLE: [JsonField; 5] = [
    field("stackIndex", sample::STACK_INDEX, Number),
    field("attributeIndices", sample::ATTRIBUTE_INDICES, Number),
    field("linkIndex", sample::LINK_INDEX, Number),
    field("values", sample::VALUES, Number),
    field("timestampsUnixNano", sample::TIMESTAMPS, Fixed64),
];
static DICTIONARY: [JsonField; 7] = [
    field("mappingTable", dictionary::MAPPING, Message(&MAPPING)),
    field("locationTable", dictionary::LOCATION, Message(&LOCATION)),
    field("functionTable", dictionary::FUNCTION, Message(&FUNCTION)),
    field("linkTable", dictionary::LINK, Message(&LINK)),
    field("stringTable", dictionary::STRING, Text),
    field("attributeTable", dictionary::ATTRIBUTE, Message(&ATTRIBUTE)),
    field("stackTable", dictionary::STACK, Message(&STACK)),
];
static STACK: [JsonField; 1] = [field("locationIndices", stack::LOCATION_INDICES, Number)];
static MAPPING: [JsonField; 3] = [
    field("memoryStart", mapping::MEMORY_START, Number),
    field("memoryLimit", mapping::MEMORY_LIMIT, Number),
    field("filenameStrindex", mapping::FILENAME, Number),
];
static LOCATION: [JsonField; 4] = [
    field("mappingIndex", location::MAPPING, Number),
    field("address", location::ADDRESS, Number),
    field("lines", location::LINES, Message(&LINE)),
    field("attributeIndices", own::ATTRIBUTE_INDICES, Number),
];
static LINE: [JsonField; 3] = [
    field("functionIndex", line::FUNCTION, Number),
    field("line", line::LINE, Number),
    field("column", line::COLUMN, Number),
];
static FUNCTION: [JsonField; 3] = [
    field("nameStrindex", function::NAME, Number),
    field("systemNameStrindex", function::SYSTEM_NAME, Number),
    field("filenameStrindex", function::FILENAME, Number),
];
static LINK: [JsonField; 2] =
    [field("traceId", link::TRACE_ID, Bytes), field("spanId", link::SPAN_ID, Bytes)];
static ATTRIBUTE: [JsonField; 3] = [
    field("keyStrindex", attribute::KEY, Number),
    field("value", attribute::VALUE, Message(&ANY)),
    field("unitStrindex", attribute::UNIT, Number),
];
static KEY_VALUE: [JsonField; 3] = [
    field("key", key_value::KEY, Text),
    field("value", key_value::VALUE, Message(&ANY)),
    field("keyStrindex", key_value::KEY_INDEX, Number),
];
static ANY: [JsonField; 8] = [
    field("stringValue", any::STRING, Text),
    field("boolValue", any::BOOL, Bool),
    field("intValue", any::INT, Number),
    field("doubleValue", any::DOUBLE, Double),
    field("arrayValue", any::ARRAY, Message(&ARRAY)),
    field("kvlistValue", any::MAP, Message(&[])),
    field("bytesValue", any::BYTES, Bytes),
    field("stringValueStrindex", any::STRING_INDEX, Number),
];
static ARRAY: [JsonField; 1] = [field("values", any::VALUES, Message(&ANY))];

/// Deserializes a document; returns its binary form.
pub(super) struct Data<'m>(pub(super) &'m JsonMemory);

impl<'de> DeserializeSeed<'de> for Data<'_> {
    type Value = Vec<u8>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Vec<u8>, D::Error> {
        let mut bytes = Vec::new();
        deserializer.deserialize_map(Members { fields: &DATA, out: &mut bytes, memory: self.0 })?;
        Ok(bytes)
    }
}

/// Deserializes the members of an object as the fields of a message.
struct Members<'o> {
    fields: &'static [JsonField],
    out: &'o mut Vec<u8>,
    memory: &'o JsonMemory,
}

impl<'de> Visitor<'de> for Members<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        while let Some(name) = members.next_key::<String>()? {
            match self.fields.iter().find(|field| is_called(field.name, &name)) {
                Some(field) => {
                    members.next_value_seed(FieldValue {
                        field,
                        out: &mut *self.out,
                        memory: self.memory,
                    })?;
                    self.memory.state(self.out.held_bytes());
                }
                None => drop(members.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

/// Whether `name` is the name of the field, in the spelling of JSON or of the message's definition.
fn is_called(field: &str, name: &str) -> bool {
    let letters = name.bytes().filter(|&byte| byte != b'_');
    field == name
        || field
            .bytes()
            .map(|byte| byte.to_ascii_lowercase())
            .eq(letters.map(|byte| byte.to_ascii_lowercase()))
}

/// Deserializes the value of a field: one, several, or `null`, which is none.
struct FieldValue<'o> {
    field: &'static JsonField,
    out: &'o mut Vec<u8>,
    memory: &'o JsonMemory,
}

impl<'de> DeserializeSeed<'de> for FieldValue<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for FieldValue<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.field.kind {
            Message(_) => "an object",
            Text => "a string",
            Bytes => "hexadecimal digits or base64",
            Number | Fixed64 => "a whole number",
            Double => "a number",
            Bool => "true or false",
            Older => return f.write_str(OLDER),
        };
        write!(f, "{what} for {}", self.field.name)
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E: serde::de::Error>(self, truth: bool) -> Result<(), E> {
        match self.field.kind {
            Bool => self.number(u64::from(truth)),
            _ => Err(E::invalid_type(serde::de::Unexpected::Bool(truth), &self)),
        }
    }

    fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<(), E> {
        match self.field.kind {
            Number | Fixed64 => self.number(number),
            Double => self.written(&number.to_string()),
            _ => Err(E::invalid_type(serde::de::Unexpected::Unsigned(number), &self)),
        }
    }

    fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<(), E> {
        match self.field.kind {
            Number => self.number(number.cast_unsigned()),
            Double => self.written(&number.to_string()),
            _ => Err(E::invalid_type(serde::de::Unexpected::Signed(number), &self)),
        }
    }

    fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<(), E> {
        // Whole numbers may be written as `1e3`.
        match self.field.kind {
            Double => self.written(&number.to_string()),
            Number | Fixed64 if number.fract() == 0.0 => self.written(&format!("{number:.0}")),
            _ => Err(E::invalid_type(serde::de::Unexpected::Float(number), &self)),
        }
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<(), E> {
        self.written(text)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<(), A::Error> {
        let Self { field, out, memory } = self;
        if matches!(field.kind, Older) {
            return Err(A::Error::custom(OLDER));
        }
        while values.next_element_seed(FieldValue { field, out: &mut *out, memory })?.is_some() {
            memory.state(out.held_bytes());
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<(), A::Error> {
        let Self { field, out, memory } = self;
        let Message(fields) = field.kind else {
            return Err(A::Error::invalid_type(serde::de::Unexpected::Map, &Self { field, out, memory }));
        };
        put_tag(out, field.number, wire::BYTES);
        let length_at = out.len();
        out.extend_from_slice(&[0; LENGTH_BYTES]);
        Members { fields, out: &mut *out, memory }.visit_map(members)?;
        let length = out.len() - length_at - LENGTH_BYTES;
        out[length_at..length_at + LENGTH_BYTES].copy_from_slice(&wide_varint(length as u64));
        Ok(())
    }
}

impl FieldValue<'_> {
    /// Appends a number, signed or not.
    fn number<E: serde::de::Error>(self, number: u64) -> Result<(), E> {
        match self.field.kind {
            Fixed64 | Double => put_fixed64(self.out, self.field.number, number),
            Older => return Err(E::custom(OLDER)),
            _ => put_number(self.out, self.field.number, number),
        }
        Ok(())
    }

    /// Appends the value of a text.
    fn written<E: serde::de::Error>(self, text: &str) -> Result<(), E> {
        let found = serde::de::Unexpected::Str(text);
        match self.field.kind {
            Text => put_bytes(self.out, self.field.number, text.as_bytes()),
            Bytes => match bytes_of(text) {
                Some(bytes) => put_bytes(self.out, self.field.number, &bytes),
                None => return Err(E::invalid_value(found, &self)),
            },
            Fixed64 | Number => match (text.parse::<u64>(), text.parse::<i64>()) {
                (Ok(number), _) => return self.number(number),
                (_, Ok(number)) if matches!(self.field.kind, Number) => {
                    return self.number(number.cast_unsigned());
                }
                _ => return Err(E::invalid_value(found, &self)),
            },
            Double => match text.parse::<f64>() {
                Ok(number) => return self.number(number.to_bits()),
                Err(_) => return Err(E::invalid_value(found, &self)),
            },
            Message(_) | Bool | Older => return Err(E::invalid_type(found, &self)),
        }
        Ok(())
    }
}

/// The number of bytes for the length of a message, which is known only after the message is written.
const LENGTH_BYTES: usize = 5;

/// Encodes a number below 2^35 in that many bytes.
fn wide_varint(number: u64) -> [u8; LENGTH_BYTES] {
    let mut rest = number;
    let mut bytes = [0; LENGTH_BYTES];
    for (place, byte) in bytes.iter_mut().enumerate() {
        let more = if place + 1 < LENGTH_BYTES { 0x80 } else { 0 };
        *byte = rest.to_le_bytes()[0] & 0x7f | more;
        rest >>= 7;
    }
    bytes
}

/// Decodes a text to bytes: hexadecimal digits of an id, or base64.
fn bytes_of(text: &str) -> Option<Vec<u8>> {
    let is_id = matches!(text.len(), 16 | 32) && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    if !is_id {
        return base64(text.as_bytes());
    }
    let digit = |digit: u8| char::from(digit).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    text.as_bytes().chunks(2).map(|pair| Some(digit(pair[0])? << 4 | digit(pair[1])?)).collect()
}

/// Decodes base64. Source: RFC 4648, sections 4 and 5: either alphabet, with or without padding.
fn base64(text: &[u8]) -> Option<Vec<u8>> {
    let (mut bits, mut held) = (0_u32, 0_u32);
    let mut bytes = Vec::new();
    for &byte in text.trim_ascii_end() {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            b'=' => continue,
            _ => return None,
        };
        bits = bits << 6 | u32::from(value);
        held += 6;
        if held >= 8 {
            held -= 8;
            bytes.push((bits >> held).to_le_bytes()[0]);
            bits &= (1 << held) - 1;
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Limits;

    fn bytes(json: &str) -> Result<Vec<u8>, String> {
        let read = Data(&JsonMemory::new(Limits::default()))
            .deserialize(&mut serde_json::Deserializer::from_str(json));
        read.map_err(|error| error.to_string())
    }

    #[test]
    fn bytes_are_hexadecimal_ids_or_base64() {
        assert_eq!(bytes_of("0001020304050607"), Some((0..8).collect()));
        assert_eq!(bytes_of("J7GrlpoRFbs=").unwrap().len(), 8);
        assert_eq!(bytes_of("zppH5kK1bMClC5ldDjaSmQ==").unwrap().len(), 16);
        assert_eq!(
            (bytes_of("AQID"), bytes_of("-_8"), bytes_of("")),
            (Some(vec![1, 2, 3]), Some(vec![0xfb, 0xff]), Some(vec![]))
        );
        assert_eq!(bytes_of("%"), None);
    }

    #[test]
    fn both_spellings_and_numbers_as_strings_give_the_same_bytes() {
        let one = r#"{"resourceProfiles":[{"scopeProfiles":[{"profiles":[{"period":"-7","timeUnixNano":"9","unknown":{"a":[1]}}]}]}]}"#;
        let other = r#"{"resource_profiles":[{"scope_profiles":[{"profiles":[{"period":-7,"time_unix_nano":9e0,"samples":null}]}]}]}"#;
        assert_eq!(bytes(one), bytes(other));
        assert!(bytes(one).unwrap().len() > 20);
    }

    #[test]
    fn invalid_values_are_reported_with_their_field() {
        for (json, expected) in [
            (r#"{"dictionary":{"stringTable":[7]}}"#, "expected a string for stringTable"),
            (r#"{"dictionary":[[3]]}"#, "expected an object for dictionary"),
            (
                r#"{"dictionary":{"linkTable":[{"spanId":"?"}]}}"#,
                "expected hexadecimal digits or base64 for spanId",
            ),
            (r#"{"dictionary":{"locationTable":[{"address":"x"}]}}"#, "expected a whole number for address"),
            (r#"{"dictionary":{"locationTable":[{"address":1.5}]}}"#, "expected a whole number for address"),
            (r#"{"resourceProfiles":[{"scopeProfiles":[{"profiles":[{"sample":[]}]}]}]}"#, OLDER),
        ] {
            let error = bytes(json).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
        let deep = format!(r#"{{"x":{}"#, "[".repeat(1_000_000));
        assert!(bytes(&deep).unwrap_err().contains("EOF while parsing"));
    }
}
