//! Trace events, read from JSON one by one.
//!
//! Source: "Trace Event Format", the Chromium project.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, de};

use crate::documents::json_copy::JsonCopy;
use crate::v8::profile::CpuProfile;

/// An event. Times are in microseconds.
#[derive(Debug, Default)]
pub(super) struct TraceEvent {
    /// The phase: what kind of event it is.
    pub(super) ph: String,
    pub(super) name: String,
    pub(super) category: String,
    pub(super) pid: TraceId,
    pub(super) tid: TraceId,
    pub(super) ts: Option<f64>,
    pub(super) dur: Option<f64>,
    /// Of a sampled profile, an asynchronous event or a counter.
    pub(super) id: TraceId,
    pub(super) args: Arguments,
    /// The arguments as JSON, of events other than calls and metadata.
    pub(super) data: Vec<u8>,
}

/// The members of an event that are read.
#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "lowercase")]
enum Member {
    Ph,
    Name,
    Cat,
    Pid,
    Tid,
    Ts,
    Dur,
    Id,
    Id2,
    Args,
    #[serde(other)]
    Other,
}

/// The id of an asynchronous event in newer versions: unique in its process, or in the trace.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ScopedId {
    local: Option<TraceId>,
    global: Option<TraceId>,
}

impl TraceEvent {
    /// Whether the arguments are data, which is kept as it is.
    pub(super) fn has_data(&self) -> bool {
        matches!(&*self.ph, "C" | "i" | "I" | "R" | "b" | "n" | "e" | "S" | "T" | "p" | "F")
    }
}

impl<'de> Deserialize<'de> for TraceEvent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(EventVisitor)
    }
}

struct EventVisitor;

impl<'de> Visitor<'de> for EventVisitor {
    type Value = TraceEvent;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an event")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<TraceEvent, A::Error> {
        let mut event = TraceEvent::default();
        // Some programs write the phase after the arguments.
        let mut early = Vec::new();
        while let Some(member) = map.next_key()? {
            match member {
                Member::Ph => event.ph = map.next_value()?,
                Member::Name => event.name = map.next_value()?,
                Member::Cat => event.category = map.next_value::<Lenient<String>>()?.0.unwrap_or_default(),
                Member::Pid => event.pid = map.next_value()?,
                Member::Tid => event.tid = map.next_value()?,
                Member::Ts => event.ts = map.next_value()?,
                Member::Dur => event.dur = map.next_value()?,
                Member::Id => event.id = map.next_value()?,
                Member::Id2 => {
                    let found = map.next_value::<Lenient<ScopedId>>()?.0.unwrap_or_default();
                    event.id = found.local.or(found.global).unwrap_or_default();
                }
                Member::Args if event.ph.is_empty() => map.next_value_seed(JsonCopy(&mut early))?,
                Member::Args if event.has_data() => map.next_value_seed(JsonCopy(&mut event.data))?,
                Member::Args => event.args = map.next_value()?,
                Member::Other => _ = map.next_value::<IgnoredAny>()?,
            }
        }
        if event.has_data() {
            event.data.append(&mut early);
        } else if !early.is_empty() {
            event.args = serde_json::from_slice(&early).map_err(A::Error::custom)?;
        }
        Ok(event)
    }
}

/// The id of a process or thread, as text: some programs write names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct TraceId(pub(super) String);

impl<'de> Deserialize<'de> for TraceId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct IdVisitor;
        impl Visitor<'_> for IdVisitor {
            type Value = TraceId;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number or a name")
            }

            fn visit_u64<E: Error>(self, number: u64) -> Result<TraceId, E> {
                Ok(TraceId(number.to_string()))
            }

            fn visit_i64<E: Error>(self, number: i64) -> Result<TraceId, E> {
                Ok(TraceId(number.to_string()))
            }

            fn visit_f64<E: Error>(self, number: f64) -> Result<TraceId, E> {
                Ok(TraceId(number.to_string()))
            }

            fn visit_str<E: Error>(self, name: &str) -> Result<TraceId, E> {
                Ok(TraceId(name.to_owned()))
            }

            fn visit_unit<E: Error>(self) -> Result<TraceId, E> {
                Ok(TraceId::default())
            }
        }
        deserializer.deserialize_any(IdVisitor)
    }
}

/// The arguments of an event that are read. Others may be anything.
#[derive(Debug, Default)]
pub(super) struct Arguments {
    /// The name of a process or thread.
    pub(super) name: Option<String>,
    /// The source file, called `filename` by py-spy.
    pub(super) file: Option<String>,
    pub(super) line: Option<i64>,
    /// A part of a sampled profile.
    pub(super) data: Option<ProfileData>,
}

/// A part of a sampled profile.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct ProfileData {
    pub(super) start_time: Option<f64>,
    pub(super) end_time: Option<f64>,
    pub(super) time_deltas: Option<Vec<f64>>,
    pub(super) cpu_profile: Option<CpuProfile>,
}

impl<'de> Deserialize<'de> for Arguments {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ArgumentsVisitor)
    }
}

struct ArgumentsVisitor;

impl<'de> Visitor<'de> for ArgumentsVisitor {
    type Value = Arguments;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("arguments")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Arguments, A::Error> {
        let mut arguments = Arguments::default();
        while let Some(key) = map.next_key::<String>()? {
            match &*key {
                "name" => arguments.name = map.next_value::<Lenient<String>>()?.0,
                "file" | "filename" => arguments.file = map.next_value::<Lenient<String>>()?.0,
                "line" => arguments.line = map.next_value::<Lenient<i64>>()?.0,
                "data" => arguments.data = map.next_value::<Lenient<ProfileData>>()?.0,
                _ => _ = map.next_value::<IgnoredAny>()?,
            }
        }
        Ok(arguments)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Arguments, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Arguments::default())
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<Arguments, E> {
        Ok(Arguments::default())
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<Arguments, E> {
        Ok(Arguments::default())
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<Arguments, E> {
        Ok(Arguments::default())
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Arguments, E> {
        Ok(Arguments::default())
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Arguments, E> {
        Ok(Arguments::default())
    }

    fn visit_unit<E: Error>(self) -> Result<Arguments, E> {
        Ok(Arguments::default())
    }
}

/// A value of one type, or `None` for a value of any other.
struct Lenient<T>(Option<T>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Lenient<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = serde_json::Value::deserialize(deserializer)?;
        Ok(Self(T::deserialize(value).ok()))
    }
}

/// Takes the events of a document as they are read.
pub(super) trait EventTaker {
    /// Takes an event.
    ///
    /// # Errors
    /// With a message, if reading has to end.
    fn event(&mut self, event: TraceEvent) -> Result<(), String>;
}

/// A document: an array of events, or an object with the array `traceEvents`.
pub(super) struct TraceSeed<'t, T>(pub(super) &'t mut T);

impl<'de, T: EventTaker> DeserializeSeed<'de> for TraceSeed<'_, T> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, T: EventTaker> Visitor<'de> for TraceSeed<'_, T> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of events, or an object with traceEvents")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        while let Some(event) = seq.next_element::<TraceEvent>()? {
            self.0.event(event).map_err(de::Error::custom)?;
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let taker = self.0;
        while let Some(key) = map.next_key::<String>()? {
            if key == "traceEvents" {
                map.next_value_seed(TraceSeed(&mut *taker))?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }
}
