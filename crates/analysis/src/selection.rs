//! The samples of a profile that a view covers, and their weights.

use borehole_model::Status;

/// The amount that a sample adds to a view. [`Profile::value_type`](crate::Profile::value_type) returns its value type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Weight {
    /// 1 for each sample, in profiles whose samples are counted.
    #[default]
    Samples,
    /// The value that the profile was built from, or else the nanoseconds that a sample stands for: the period of its
    /// segment.
    Value,
    /// The nanoseconds that a sample stands for, if its thread is known to have been on a CPU.
    OnCpu,
}

/// A filter of samples by their context, which is everything except the stack.
///
/// An empty list accepts all samples. A sample whose property is unknown does not match a filter on it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SampleSelection {
    /// The time range. A slice that is partly in the range counts as a whole.
    pub time: Option<TimeRange>,
    /// Threads, as numbered by the operating system.
    pub threads: Vec<u64>,
    /// Processes.
    pub processes: Vec<i64>,
    /// Interpreters.
    pub interpreters: Vec<u64>,
    /// Labels that samples must have, all of them, as keys and values. Numbers are compared as decimal text. If a sample
    /// has no label with a key, the metadata of its profile is searched.
    pub labels: Vec<(Vec<u8>, Vec<u8>)>,
    /// Thread states that samples must have, all of them.
    pub status: Status,
}

/// A range of time; the end is excluded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TimeRange {
    /// The start, in nanoseconds since the first sample.
    pub start_ns: i64,
    /// The end, in nanoseconds since the first sample.
    pub end_ns: i64,
}

impl TimeRange {
    /// The first and last slice that overlap the range. A slice that is partly in the range counts as a whole.
    pub(crate) const fn slices(self, shift: u32) -> (i64, i64) {
        (self.start_ns >> shift, self.end_ns.saturating_sub(1) >> shift)
    }
}
