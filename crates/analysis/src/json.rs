//! Serialization of view fields whose type alone does not define it.
//!
//! Invalid UTF-8 is replaced by U+FFFD. 128-bit integers saturate at the limits of 64 bits, which are those of most readers.

use std::sync::Arc;

use borehole_model::{LaneId, ValueType};
use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};

use crate::view::LabelText;

/// Bytes serialized as text.
pub(crate) struct Text<'a>(pub(crate) &'a [u8]);

impl Serialize for Text<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&String::from_utf8_lossy(self.0))
    }
}

pub(crate) fn text<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    Text(bytes).serialize(serializer)
}

pub(crate) fn optional_text<S: Serializer>(
    bytes: &Option<Vec<u8>>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    bytes.as_deref().map(Text).serialize(serializer)
}

/// A number, or an object of `number` and `unit` if there is a unit.
pub(crate) fn quantity<S: Serializer>(
    number: &i64,
    unit: &Option<Vec<u8>>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let Some(unit) = unit else { return number.serialize(serializer) };
    let mut object = serializer.serialize_map(Some(2))?;
    object.serialize_entry("number", number)?;
    object.serialize_entry("unit", &Text(unit))?;
    object.end()
}

/// A list of pairs of key and value.
pub(crate) fn labels<S: Serializer>(
    labels: &[(Vec<u8>, LabelText)],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(labels.iter().map(|(key, value)| (Text(key), value)))
}

/// The number of a process (`i64`) or thread (`u64`).
pub(crate) trait LaneNumber: Copy + Serialize {
    fn id(self) -> LaneId;
}

impl LaneNumber for i64 {
    fn id(self) -> LaneId {
        LaneId::of_process(self)
    }
}

impl LaneNumber for u64 {
    fn id(self) -> LaneId {
        LaneId::of(self)
    }
}

/// The operating system's number; a text such as `100.1` for other lane ids.
pub(crate) fn lane<N: LaneNumber, S: Serializer>(number: &N, serializer: S) -> Result<S::Ok, S::Error> {
    match number.id() {
        LaneId::System(_) => number.serialize(serializer),
        other => serializer.collect_str(&other),
    }
}

pub(crate) fn optional_lane<N: LaneNumber, S: Serializer>(
    number: &Option<N>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match number {
        Some(number) => lane(number, serializer),
        None => serializer.serialize_none(),
    }
}

/// The keys `value_type` and `unit`.
pub(crate) fn value_type<S: Serializer>(of: &ValueType, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map([("value_type", &of.kind), ("unit", &of.unit)])
}

/// The keys `value_type` and `unit`, or none.
pub(crate) fn optional_value_type<S: Serializer>(
    of: &Option<ValueType>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match of {
        Some(of) => value_type(of, serializer),
        None => serializer.serialize_none(),
    }
}

/// A list of texts of the form `kind/unit`.
pub(crate) fn value_type_names<S: Serializer>(types: &[ValueType], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(types.iter().map(ToString::to_string))
}

/// A list of objects with `value_type`, `unit` and `samples`.
pub(crate) fn hidden<S: Serializer>(kinds: &[(ValueType, u64)], serializer: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Hidden<'a> {
        #[serde(flatten, serialize_with = "value_type")]
        of: &'a ValueType,
        samples: u64,
    }
    serializer.collect_seq(kinds.iter().map(|(of, samples)| Hidden { of, samples: *samples }))
}

pub(crate) fn signed<S: Serializer>(value: &i128, serializer: S) -> Result<S::Ok, S::Error> {
    let limit = if *value < 0 { i64::MIN } else { i64::MAX };
    i64::try_from(*value).unwrap_or(limit).serialize(serializer)
}

pub(crate) fn optional_time<S: Serializer>(time_ns: &Option<u128>, serializer: S) -> Result<S::Ok, S::Error> {
    time_ns.map(time).serialize(serializer)
}

/// Nanoseconds, saturating at 64 bits, which are 584 years.
pub(crate) fn time(time_ns: u128) -> u64 {
    u64::try_from(time_ns).unwrap_or(u64::MAX)
}

/// An offset to add to a time; `null` if it does not fit into 64 bits.
pub(crate) fn offset<S: Serializer>(offset_ns: &Option<i128>, serializer: S) -> Result<S::Ok, S::Error> {
    offset_ns.and_then(|offset_ns| i64::try_from(offset_ns).ok()).serialize(serializer)
}

/// A shared value, serialized like an owned one.
pub(crate) fn shared<T: Serialize, S: Serializer>(value: &Arc<T>, serializer: S) -> Result<S::Ok, S::Error> {
    (**value).serialize(serializer)
}

pub(crate) fn shared_list<T: Serialize, S: Serializer>(
    values: &[Arc<T>],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(values.iter().map(|value| &**value))
}
