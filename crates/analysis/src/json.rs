//! Serialization of view fields whose type alone does not define it.
//!
//! Invalid UTF-8 is replaced by U+FFFD. 128-bit integers saturate at the limits of 64 bits, which are those of most readers.

use std::sync::Arc;

use borehole_model::{LaneId, ValueType};
use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};

use crate::DistinctNumbers;

/// Bytes serialized as text.
pub(crate) struct LossyText<'a>(pub(crate) &'a [u8]);

impl Serialize for LossyText<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&String::from_utf8_lossy(self.0))
    }
}

/// A value, or an optional one. An absent value is serialized as null.
pub(crate) trait Maybe<T> {
    fn get(&self) -> Option<&T>;
}

impl<T> Maybe<T> for T {
    fn get(&self) -> Option<&T> {
        Some(self)
    }
}

impl<T> Maybe<T> for Option<T> {
    fn get(&self) -> Option<&T> {
        self.as_ref()
    }
}

pub(crate) fn text<S: Serializer>(bytes: &impl Maybe<Vec<u8>>, serializer: S) -> Result<S::Ok, S::Error> {
    bytes.get().map(|bytes| LossyText(bytes)).serialize(serializer)
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
    object.serialize_entry("unit", &LossyText(unit))?;
    object.end()
}

/// A list of pairs of key and value.
pub(crate) fn labels<S: Serializer>(
    labels: &[(Vec<u8>, impl Serialize)],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(labels.iter().map(|(key, value)| (LossyText(key), value)))
}

pub(crate) fn process<S: Serializer>(number: &impl Maybe<i64>, serializer: S) -> Result<S::Ok, S::Error> {
    let number = number.get().copied();
    lane(number.map(LaneId::of_process), number, serializer)
}

pub(crate) fn thread<S: Serializer>(number: &impl Maybe<u64>, serializer: S) -> Result<S::Ok, S::Error> {
    let number = number.get().copied();
    lane(number.map(LaneId::of), number, serializer)
}

/// The operating system's number; a text such as `100.1` for other lane ids.
fn lane<S: Serializer>(id: Option<LaneId>, number: impl Serialize, serializer: S) -> Result<S::Ok, S::Error> {
    match id {
        None | Some(LaneId::System(_)) => number.serialize(serializer),
        Some(other) => serializer.collect_str(&other),
    }
}

/// The number of a lane in a list.
struct Listed<N>(LaneId, N);

impl<N: Serialize> Serialize for Listed<N> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        lane(Some(self.0), &self.1, serializer)
    }
}

pub(crate) fn processes<S: Serializer>(
    numbers: &DistinctNumbers<i64>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(numbers.values.iter().map(|&number| Listed(LaneId::of_process(number), number)))
}

pub(crate) fn threads<S: Serializer>(
    numbers: &DistinctNumbers<u64>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(numbers.values.iter().map(|&number| Listed(LaneId::of(number), number)))
}

/// The keys `value_type` and `unit`, or none.
pub(crate) fn value_type<S: Serializer>(
    of: &impl Maybe<ValueType>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match of.get() {
        Some(of) => serializer.collect_map([("value_type", &of.kind), ("unit", &of.unit)]),
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
        value_type: &'a str,
        unit: &'a str,
        samples: u64,
    }
    serializer.collect_seq(kinds.iter().map(|(of, samples)| Hidden {
        value_type: &of.kind,
        unit: &of.unit,
        samples: *samples,
    }))
}

pub(crate) fn signed<S: Serializer>(value: &i128, serializer: S) -> Result<S::Ok, S::Error> {
    let limit = if *value < 0 { i64::MIN } else { i64::MAX };
    i64::try_from(*value).unwrap_or(limit).serialize(serializer)
}

pub(crate) const fn is_zero(value: &i128) -> bool {
    *value == 0
}

pub(crate) fn time<S: Serializer>(time_ns: &Option<u128>, serializer: S) -> Result<S::Ok, S::Error> {
    time_ns.map(saturated).serialize(serializer)
}

/// Nanoseconds, saturating at 64 bits, which are 584 years.
pub(crate) fn saturated(time_ns: u128) -> u64 {
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
