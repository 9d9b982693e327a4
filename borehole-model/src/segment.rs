//! What a stretch of samples has in common.

use crate::ids::StringId;
use crate::value::{Measure, Mode, ValueType};

/// A self-contained stretch of a trace: an `rbt` segment, a `trc` batch, or a whole file of another format.
///
/// The clock: [`Sample::time_ns`](crate::Sample::time_ns) counts from an origin that all segments of one
/// input share. Where the origin's wall time is known, `start_unix_ns` gives it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Segment {
    /// The format it was read from, by its short name: `rbt`, `pprof`.
    pub format: &'static str,
    /// Which segment of its input this is, 0-based.
    pub index: u64,
    /// Where it starts in its input, in bytes after decompression; `None` for formats without segments.
    pub offset: Option<u64>,
    /// The sampling period in nanoseconds.
    pub period_ns: Option<u64>,
    /// Whether the source records when samples were taken.
    pub has_times: bool,
    /// Whether samples stand in the order in which they were taken, whether or not they have times.
    pub is_ordered: bool,
    /// The wall time of the clock's origin, in nanoseconds since 1970 (UTC).
    pub start_unix_ns: Option<i64>,
    /// When profiling began, on the clock of the samples, of a clock whose origin is something else.
    pub began_ns: Option<i64>,
    /// How many frames a stack has at most in the source: one that is so deep may lack its outer ones. `None`: no such limit.
    pub depth_limit: Option<u32>,
    /// The process that all samples are of, unless a sample names another.
    pub process: Option<i64>,
    /// Keys and values that stood before the first sample, in order.
    pub metadata: Vec<(StringId, StringId)>,
    /// What the count of samples measures when it is multiplied by the period.
    pub mode: Mode,
    /// What [`Sample::values`](crate::Sample::values) are. Empty where samples only count.
    pub value_types: Vec<ValueType>,
    /// The number that the source wants shown first. Absent: it does not say, see [`Segment::default_measure`].
    pub default_measure: Option<Measure>,
    /// Whether the source does not say how many observations a record is: its values are all there is, and its count is 1.
    pub is_uncounted: bool,
}
