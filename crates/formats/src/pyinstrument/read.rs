//! A session, read from JSON as a stream.
//!
//! Source: pyinstrument 5.1.3, `session.py` (`Session.to_json`), `frame_info.py` and `frame.py`.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// The facts about a session.
#[derive(Debug, Default)]
pub(super) struct SessionFacts {
    /// In seconds since 1970.
    pub(super) start_time: Option<f64>,
    /// In seconds.
    pub(super) min_interval: Option<f64>,
    pub(super) target_description: Option<String>,
}

/// Takes the samples of a session.
pub(super) trait RecordTaker {
    /// Takes a frame of the next sample, the root first.
    ///
    /// # Errors
    /// If there is no room for it.
    fn frame(&mut self, text: &str) -> Result<(), String>;

    /// Takes the time of a sample, in seconds, after its frames.
    fn time(&mut self, seconds: f64);
}

/// Text of a frame, taken apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct FrameInfo<'a> {
    pub(super) function: &'a str,
    /// Empty for what is no function, such as `[await]`.
    pub(super) file: &'a str,
    pub(super) class: &'a str,
    /// The line that was executed, or else that of the function.
    pub(super) line: Option<i64>,
    /// The number of a thread, if the frame stands for one.
    pub(super) thread: Option<&'a str>,
}

impl<'a> FrameInfo<'a> {
    /// Takes a text apart: function, file and line with NUL bytes between them, then attributes behind the byte 1.
    pub(super) fn parse(text: &'a str) -> Self {
        let mut attributes = text.split('\x01');
        let mut names = attributes.next().unwrap_or_default().split('\0');
        let mut name = || names.next().unwrap_or_default();
        let (function, file, line) = (name(), name(), name());
        if file == "<thread>" {
            return Self { function, thread: Some(line), ..Self::default() };
        }
        let mut info = Self { function, file, line: line.parse().ok(), ..Self::default() };
        for attribute in attributes {
            match attribute.split_at_checked(1) {
                Some(("c", class)) => info.class = class,
                Some(("l", line)) => info.line = line.parse().ok().or(info.line),
                _ => {}
            }
        }
        info.line = info.line.filter(|&line| line > 0);
        info
    }
}

/// Reads a session: its samples go to the taker, whatever member comes first.
pub(super) struct SessionSeed<'a, T>(pub(super) &'a mut T);

impl<'de, T: RecordTaker> DeserializeSeed<'de> for SessionSeed<'_, T> {
    type Value = SessionFacts;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<SessionFacts, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de, T: RecordTaker> Visitor<'de> for SessionSeed<'_, T> {
    type Value = SessionFacts;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a session")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<SessionFacts, A::Error> {
        let mut facts = SessionFacts::default();
        while let Some(name) = members.next_key::<String>()? {
            match &*name {
                "start_time" => facts.start_time = members.next_value()?,
                "min_interval" => facts.min_interval = members.next_value()?,
                "target_description" => facts.target_description = members.next_value()?,
                "frame_records" => members.next_value_seed(RecordList(&mut *self.0))?,
                _ => drop(members.next_value::<IgnoredAny>()?),
            }
        }
        Ok(facts)
    }
}

/// The list of samples.
struct RecordList<'a, T>(&'a mut T);

impl<'de, T: RecordTaker> DeserializeSeed<'de> for RecordList<'_, T> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de, T: RecordTaker> Visitor<'de> for RecordList<'_, T> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of samples")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut records: A) -> Result<(), A::Error> {
        while records.next_element_seed(OneRecord(&mut *self.0))?.is_some() {}
        Ok(())
    }
}

/// A sample: its frames, and its time.
struct OneRecord<'a, T>(&'a mut T);

impl<'de, T: RecordTaker> DeserializeSeed<'de> for OneRecord<'_, T> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de, T: RecordTaker> Visitor<'de> for OneRecord<'_, T> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("frames and a time")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<(), A::Error> {
        let missing = |place| A::Error::invalid_length(place, &"frames and a time");
        parts.next_element_seed(FrameList(&mut *self.0))?.ok_or_else(|| missing(0))?;
        let seconds = parts.next_element()?.ok_or_else(|| missing(1))?;
        self.0.time(seconds);
        Ok(())
    }
}

/// The frames of a sample.
struct FrameList<'a, T>(&'a mut T);

impl<'de, T: RecordTaker> DeserializeSeed<'de> for FrameList<'_, T> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de, T: RecordTaker> Visitor<'de> for FrameList<'_, T> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of frames")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut frames: A) -> Result<(), A::Error> {
        while frames.next_element_seed(OneFrame(&mut *self.0))?.is_some() {}
        Ok(())
    }
}

/// A frame.
struct OneFrame<'a, T>(&'a mut T);

impl<'de, T: RecordTaker> DeserializeSeed<'de> for OneFrame<'_, T> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<T: RecordTaker> Visitor<'_> for OneFrame<'_, T> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the text of a frame")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<(), E> {
        self.0.frame(text).map_err(E::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_functions_threads_or_neither() {
        let parse = FrameInfo::parse;
        let method =
            FrameInfo { function: "order", file: "/shop.py", class: "Shop", line: Some(5), thread: None };
        assert_eq!(parse("order\0/shop.py\x004\x01cShop\x01l5\x01h1"), method);
        let built_in = FrameInfo { function: "sleep", file: "<built-in>", ..FrameInfo::default() };
        assert_eq!(parse("sleep\0<built-in>\x000"), built_in);
        let thread = FrameInfo { function: "MainThread", thread: Some("7"), ..FrameInfo::default() };
        assert_eq!(parse("MainThread\0<thread>\x007"), thread);
        assert_eq!(parse("[await]"), FrameInfo { function: "[await]", ..FrameInfo::default() });
        assert_eq!(
            parse("f\0a.py\x003\x01ü"),
            FrameInfo { function: "f", file: "a.py", line: Some(3), ..FrameInfo::default() }
        );
    }
}
