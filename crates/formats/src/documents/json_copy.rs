//! Values of JSON copied as text while a document is read, to be parsed when they are wanted.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};

/// Copies a value as JSON. The parser limits how deep values are nested.
pub(crate) struct JsonCopy<'a>(pub(crate) &'a mut Vec<u8>);

impl JsonCopy<'_> {
    fn put<E: serde::de::Error>(self, value: &impl serde::Serialize) -> Result<(), E> {
        serde_json::to_writer(self.0, value).map_err(E::custom)
    }
}

impl<'de> DeserializeSeed<'de> for JsonCopy<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for JsonCopy<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_bool<E: serde::de::Error>(self, truth: bool) -> Result<(), E> {
        self.put(&truth)
    }

    fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<(), E> {
        self.put(&number)
    }

    fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<(), E> {
        self.put(&number)
    }

    fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<(), E> {
        self.put(&number)
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<(), E> {
        self.put(&text)
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<(), E> {
        self.put(&())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        self.0.push(b'[');
        let mut is_first = true;
        loop {
            let before = self.0.len();
            if !is_first {
                self.0.push(b',');
            }
            if list.next_element_seed(JsonCopy(self.0))?.is_none() {
                self.0.truncate(before);
                break;
            }
            is_first = false;
        }
        self.0.push(b']');
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        self.0.push(b'{');
        let mut is_first = true;
        while let Some(key) = map.next_key::<String>()? {
            if !std::mem::take(&mut is_first) {
                self.0.push(b',');
            }
            serde_json::to_writer(&mut *self.0, &key).map_err(A::Error::custom)?;
            self.0.push(b':');
            map.next_value_seed(JsonCopy(self.0))?;
        }
        self.0.push(b'}');
        Ok(())
    }
}
