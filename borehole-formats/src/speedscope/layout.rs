//! Names and units of the format.
//!
//! Source: jlfwong/speedscope 1.25.0, `src/lib/file-format-spec.ts` and the JSON schema made from it,
//! `file-format-schema.json`.

use serde::Deserialize;

/// The value of `$schema`, by which the viewer knows its own format.
pub(super) const SCHEMA: &str = "https://www.speedscope.app/file-format-schema.json";

/// What weights are counted in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) enum Unit {
    #[default]
    None,
    Nanoseconds,
    Microseconds,
    Milliseconds,
    Seconds,
    Bytes,
}

impl Unit {
    const ALL: [Self; 6] =
        [Self::None, Self::Nanoseconds, Self::Microseconds, Self::Milliseconds, Self::Seconds, Self::Bytes];

    /// The names of all units.
    pub(super) const NAMES: [&'static str; 6] =
        ["none", "nanoseconds", "microseconds", "milliseconds", "seconds", "bytes"];

    pub(super) const fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }

    /// The unit of that name; `None` for one that the format does not have.
    pub(super) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|unit| unit.name() == name)
    }

    /// How many nanoseconds it has, if it is a time.
    pub(super) const fn nanoseconds(self) -> Option<u32> {
        match self {
            Self::Nanoseconds => Some(1),
            Self::Microseconds => Some(1_000),
            Self::Milliseconds => Some(1_000_000),
            Self::Seconds => Some(1_000_000_000),
            Self::None | Self::Bytes => None,
        }
    }
}

/// Metadata that says what a profile of another program was like, so that it can be written as it was.
pub(super) mod keys {
    pub(in super::super) const NAME: &str = "profile";
    /// The unit of its times, where that is not nanoseconds.
    pub(in super::super) const UNIT: &str = "profile unit";
    /// `evented`, if it was.
    pub(in super::super) const TYPE: &str = "profile type";
    /// Where it begins and ends, in its unit, where the samples do not tell.
    pub(in super::super) const START: &str = "profile start";
    pub(in super::super) const END: &str = "profile end";
}

/// What the weights of a profile that we wrote are, in its member `borehole`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Weights {
    /// How many samples.
    Counts,
    /// How many samples, times the period.
    Periods,
    /// The time until the next sample.
    Times,
    /// The time that the samples lasted; what has no samples is an entry of count 0.
    Durations,
    /// A value that the samples measured.
    Values,
}

impl Weights {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Counts => "counts",
            Self::Periods => "periods",
            Self::Times => "times",
            Self::Durations => "durations",
            Self::Values => "values",
        }
    }
}

/// A time as JSON's other readers hold it.
pub(super) fn clamped(time_ns: i128) -> i64 {
    i64::try_from(time_ns).unwrap_or(if time_ns < 0 { i64::MIN } else { i64::MAX })
}
