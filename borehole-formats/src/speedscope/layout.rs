//! Names and units of the format.
//!
//! Source: jlfwong/speedscope 1.25.0, `src/lib/file-format-spec.ts` and the JSON schema made from it,
//! `file-format-schema.json`.

use serde::Deserialize;

/// The value of `$schema`, by which the viewer knows its own format.
pub(super) const SCHEMA: &str = "https://www.speedscope.app/file-format-schema.json";

/// What weights are counted in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
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
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Nanoseconds => "nanoseconds",
            Self::Microseconds => "microseconds",
            Self::Milliseconds => "milliseconds",
            Self::Seconds => "seconds",
            Self::Bytes => "bytes",
        }
    }

    /// The unit of that name; none for units that the format does not have.
    pub(super) fn named(name: &str) -> Self {
        let all = [Self::Nanoseconds, Self::Microseconds, Self::Milliseconds, Self::Seconds, Self::Bytes];
        all.into_iter().find(|unit| unit.name() == name).unwrap_or(Self::None)
    }

    /// How many nanoseconds it has, if it is a time.
    pub(super) const fn nanoseconds(self) -> Option<i64> {
        match self {
            Self::Nanoseconds => Some(1),
            Self::Microseconds => Some(1_000),
            Self::Milliseconds => Some(1_000_000),
            Self::Seconds => Some(1_000_000_000),
            Self::None | Self::Bytes => None,
        }
    }
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
    /// A value that the samples measured.
    Values,
}

impl Weights {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Counts => "counts",
            Self::Periods => "periods",
            Self::Times => "times",
            Self::Values => "values",
        }
    }
}
