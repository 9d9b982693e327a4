//! Serialization of view fields whose type alone does not define it. Invalid UTF-8 is replaced by U+FFFD.

use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};

/// Implements [`Serialize`] as the name of a value.
macro_rules! serialized_by_name {
    ($($type:ty),+) => {
        $(impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.name())
            }
        })+
    };
}
pub(crate) use serialized_by_name;

/// Bytes serialized as text.
struct LossyText<'a>(&'a [u8]);

impl Serialize for LossyText<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&String::from_utf8_lossy(self.0))
    }
}

pub(crate) fn text<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    LossyText(bytes).serialize(serializer)
}

pub(crate) fn texts<S: Serializer>(all: &[Vec<u8>], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(all.iter().map(|bytes| LossyText(bytes)))
}

pub(crate) fn optional_text<S: Serializer>(
    bytes: &Option<Vec<u8>>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    bytes.as_deref().map(LossyText).serialize(serializer)
}

/// Pairs of key and value as an object.
pub(crate) fn object<S: Serializer>(
    pairs: &[(impl AsRef<str>, impl Serialize)],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let mut object = serializer.serialize_map(Some(pairs.len()))?;
    for (key, value) in pairs {
        object.serialize_entry(key.as_ref(), value)?;
    }
    object.end()
}

/// Pairs of name and count as an object.
pub(crate) fn counts<S: Serializer>(pairs: &[(Vec<u8>, u64)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(pairs.iter().map(|(name, count)| (LossyText(name), count)))
}
