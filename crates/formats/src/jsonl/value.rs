//! Lines of type `event`, with their values.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error, MapAccess, Visitor};

use super::read::{Text, decode_hex};

#[derive(Deserialize)]
pub(super) struct EventLine<'a> {
    #[serde(borrow)]
    pub(super) name: Text<'a>,
    pub(super) type_id: Option<u32>,
    pub(super) time_ns: Option<u64>,
    #[serde(borrow, default)]
    pub(super) fields: Vec<(Text<'a>, ValueObject<'a>)>,
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
