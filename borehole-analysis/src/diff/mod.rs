//! Two sets of profiles beside each other, and which of their differences are more than noise.
//!
//! [`DiffSink`] takes the samples of both sides, over tables that they share, and answers with a [`DiffView`].
//! Sides are made comparable by dividing what was sampled by something that both know ([`Per`]).
//!
//! Noise is measured, not assumed: samples that follow each other are alike, so the number of samples says little
//! about how far a share can be trusted. Each side is cut into at most [`BLOCKS`] stretches of time (or into its
//! inputs, where there are several), and how much a function's share varies between them says how much it varies by
//! itself. It is never taken to vary less than independent samples would. A difference is then held against both
//! sides' variation (Welch's test), and all of them together against how many there are (the procedure of Benjamini and
//! Hochberg): of the differences that are marked, the expected part that is noise is at most one minus the confidence,
//! and so is the chance of any mark between runs of an unchanged program.
//!
//! * A sample costs two additions. The rest is linear in the distinct stacks, whatever their depth.
//! * What varies more slowly than a whole profile lasts shows between several inputs of a side, and nowhere else.

mod answer;
mod blocks;
pub(crate) mod frames;
mod noise;
mod rows;
mod side;
mod sink;
mod sums;
mod view;

#[cfg(test)]
mod tests;

pub use blocks::BLOCKS;
pub use sink::DiffSink;
pub use view::{
    Amount, Basis, Change, DiffFrame, DiffNode, DiffPath, DiffRow, DiffSide, DiffView, Measure, Presence,
};

use crate::pattern::Pattern;

/// What is asked of two sides.
#[derive(Clone, Debug)]
pub struct DiffQuery {
    /// What samples are divided by.
    pub per: Per,
    /// The value type that is compared, by its kind, or kind and unit; `None` for the default of each side's first profile.
    pub value: Option<String>,
    /// What makes two frames the same.
    pub identity: Identity,
    /// Only stacks with such a frame are compared; they are still divided by all of their side.
    pub focus: Option<Pattern>,
    /// Frames that are taken out of every stack.
    pub hide: Option<Pattern>,
    /// How sure a marked difference is to be, from 0 to 1.
    pub confidence: f64,
    /// How many inputs each side has: from [`DiffQuery::RUNS`] on for both, noise is what differs between them.
    pub inputs: [usize; 2],
    /// The most paths that are listed; `None` for all.
    pub paths: Option<usize>,
    /// The part of the whole below which calls are left out of the tree.
    pub least_share: f64,
}

impl DiffQuery {
    /// From how many inputs a side on noise is what differs between inputs: fewer say too little about it.
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

/// What samples are divided by, so that sides of different length can be compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Per {
    /// All samples of the side: shares are compared.
    Samples,
    /// The time from its first to its last sample.
    Time,
    /// Its inputs: runs of the same work.
    Input,
    /// The distinct values of the label with this key: requests, jobs.
    Label(Vec<u8>),
}

/// What makes two frames the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Identity {
    /// Function and file where both sides know files, else the function.
    #[default]
    Known,
    /// The function.
    Function,
    /// Function and file.
    File,
    /// Function, file and line.
    Line,
}
