//! Segments: properties that a stretch of samples shares.

use crate::ids::StringId;
use crate::value::{Measure, Mode, ValueType};

/// A self-contained stretch of a trace: an `rbt` segment, a `trc` batch, or a whole file of another format.
///
/// Clock: [`Sample::time_ns`](crate::Sample::time_ns) counts from an origin that all segments of one input share.
/// `start_unix_ns` is the wall time of the origin, if known.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Segment {
    /// The short name of the source format, such as `rbt` or `pprof`.
    pub format: &'static str,
    /// The index of the segment in its input, 0-based.
    pub index: u64,
    /// The offset of its start in the input, in bytes after decompression; `None` for formats without segments.
    pub offset: Option<u64>,
    /// The sampling period in nanoseconds.
    pub period_ns: Option<u64>,
    /// Whether the source records when samples were taken.
    pub has_times: bool,
    /// Whether samples are in the order in which they were taken, even if they have no times.
    pub is_ordered: bool,
    /// The wall time of the clock's origin, in nanoseconds since 1970 (UTC).
    pub start_unix_ns: Option<i64>,
    /// When profiling began, on the clock of the samples, if the clock has another origin.
    pub began_ns: Option<i64>,
    /// The maximum number of frames of a stack in the source; a stack this deep may lack its outer frames. `None`: no limit.
    pub depth_limit: Option<u32>,
    /// The process of all samples, unless a sample names another.
    pub process: Option<i64>,
    /// Metadata that precedes the first sample, as keys and values in order.
    pub metadata: Vec<(StringId, StringId)>,
    /// The clock of the samples: it defines what their count times the period measures.
    pub mode: Mode,
    /// The types of [`Sample::values`](crate::Sample::values). Empty if samples only count.
    pub value_types: Vec<ValueType>,
    /// The measure that the source wants shown first. `None`: the source names none, see [`Segment::default_measure`].
    pub default_measure: Option<Measure>,
    /// Whether the source omits how many observations a record stands for. Its values are all there is, and its count is
    /// 1.
    pub is_uncounted: bool,
}
