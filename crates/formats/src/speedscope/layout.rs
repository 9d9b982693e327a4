//! The names and units of the format.
//!
//! Source: jlfwong/speedscope 1.25.0, `src/lib/file-format-spec.ts` and the JSON schema made from it,
//! `file-format-schema.json`.

use serde::Deserialize;

/// The value of `$schema`, by which the viewer detects its own format.
pub(super) const SCHEMA: &str = "https://www.speedscope.app/file-format-schema.json";

/// The unit of weights.
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

    /// The unit of that name; `None` for a name unknown to the format.
    pub(super) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|unit| unit.name() == name)
    }

    /// Its length in nanoseconds; `None` if it is not a time.
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

/// The metadata keys about another program's profile, so that it can be restored.
pub(super) mod keys {
    pub(in super::super) const NAME: &str = "profile";
    /// The unit of its times, if that is not nanoseconds.
    pub(in super::super) const UNIT: &str = "profile unit";
    /// `evented`, for a profile of events.
    pub(in super::super) const TYPE: &str = "profile type";
    /// Its start and end, in its unit, if the samples do not state them.
    pub(in super::super) const START: &str = "profile start";
    pub(in super::super) const END: &str = "profile end";
}

/// The kind of weights of a profile written by Borehole, in its member `borehole`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum WeightMeaning {
    /// The numbers of samples.
    Counts,
    /// The numbers of samples, times the period.
    Periods,
    /// The time until the next sample.
    Times,
    /// The time that the samples lasted; gaps are entries of count 0.
    Durations,
    /// A value that the samples measured.
    Values,
}

impl WeightMeaning {
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

/// A time clamped to the range of other JSON readers.
pub(super) fn clamped(time_ns: i128) -> i64 {
    i64::try_from(time_ns).unwrap_or(if time_ns < 0 { i64::MIN } else { i64::MAX })
}
