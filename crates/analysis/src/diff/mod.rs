//! Comparison of two sets of profiles, with a test of which differences are more than noise.
//!
//! [`DiffSink`] takes the samples of both sides, over shared tables, and produces a [`DiffView`]. To make sides
//! comparable, their samples are divided by something that both sides know ([`Per`]).
//!
//! Noise is measured, not assumed: consecutive samples are similar, so the number of samples says little about how
//! reliable a share is. Each side is cut into at most [`STRETCHES`] stretches of time (or into its inputs, if there are
//! several), and the variation of a function's share between them estimates how much it varies by itself. The estimate
//! is never lower than that of independent samples. Each difference is then compared with both sides' variation
//! (Welch's test), and all of them together are corrected for their number (the procedure of Benjamini and Hochberg).
//! Of the differences that are marked, the expected part that is noise is at most one minus the confidence, and so is
//! the chance of any mark between runs of an unchanged program.
//!
//! * A sample costs two additions. The rest is linear in the distinct stacks, whatever their depth.
//! * Variation slower than the length of a profile is visible only between several inputs of a side.

mod answer;
pub(crate) mod frames;
mod noise;
mod rows;
mod side;
mod sink;
mod stretches;
mod view;

#[cfg(test)]
mod tests;

pub use sink::DiffSink;
pub use stretches::STRETCHES;
pub use view::{
    Amount, DiffFrame, DiffMeasure, DiffNode, DiffPath, DiffRow, DiffSide, DiffView, NoiseBasis, Presence,
    ValueChange,
};

use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;

use crate::pattern::Pattern;
use crate::query::label_key;

/// A query about two sides.
#[derive(Clone, Debug)]
pub struct DiffQuery {
    /// The divisor of samples.
    pub per: Per,
    /// The value type to compare, by its kind, or kind and unit; `None` for the default of each side's first profile.
    pub value: Option<String>,
    /// The properties by which frames are identical.
    pub identity: Identity,
    /// Compares only stacks with a matching frame. They are still divided by the whole side.
    pub focus: Option<Pattern>,
    /// Frames to remove from every stack.
    pub hide: Option<Pattern>,
    /// The confidence of marked differences, 0 to 1.
    pub confidence: f64,
    /// The number of inputs of each side. If both have at least [`DiffQuery::RUNS`], noise is the variation between
    /// them.
    pub inputs: [usize; 2],
    /// The maximum number of paths listed; `None` for all.
    pub paths: Option<usize>,
    /// The share of the whole below which calls are left out of the tree.
    pub least_share: f64,
}

impl DiffQuery {
    /// The minimum number of inputs of each side for noise to be measured between inputs; fewer say too little about
    /// it.
    pub const RUNS: usize = 4;
}

impl Default for DiffQuery {
    fn default() -> Self {
        Self {
            per: Per::Samples,
            value: None,
            identity: Identity::default(),
            focus: None,
            hide: None,
            confidence: 0.95,
            inputs: [1, 1],
            paths: Some(100),
            least_share: 0.0005,
        }
    }
}

/// The divisor of samples, which makes sides of different length comparable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Per {
    /// All samples of the side: shares are compared.
    Samples,
    /// The time from its first to its last sample.
    Time,
    /// Its inputs: runs of the same work.
    Input,
    /// The distinct values of the label with this key, such as requests or jobs.
    Label(Vec<u8>),
}

/// The name that options state: `samples`, `time` or `input`, or `label:KEY`.
impl fmt::Display for Per {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Samples => f.write_str("samples"),
            Self::Time => f.write_str("time"),
            Self::Input => f.write_str("input"),
            Self::Label(key) => write!(f, "label:{}", String::from_utf8_lossy(key)),
        }
    }
}

/// Parses a name that is displayed. All other text is the key of a label.
impl FromStr for Per {
    type Err = Infallible;

    fn from_str(name: &str) -> Result<Self, Infallible> {
        Ok(match name {
            "samples" => Self::Samples,
            "time" => Self::Time,
            "input" => Self::Input,
            label => Self::Label(label_key(label)),
        })
    }
}

/// The properties by which frames are identical.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Identity {
    /// Function and file if both sides know files, else the function.
    #[default]
    Known,
    /// The function.
    Function,
    /// Function and file.
    File,
    /// Function, file and line.
    Line,
}
