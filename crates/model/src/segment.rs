//! Segments: properties that a stretch of samples shares, and the clock of a document.

use crate::ids::StringId;
use crate::sample::Sample;
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
    /// The wall time of the clock's origin, in nanoseconds since 1970 (UTC). Of a segment without times, that of its beginning.
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

/// The clock of a document: that of the first input with a known start. Times of other inputs with a known start are
/// moved to it, earlier or later; times of inputs without one stay unchanged.
#[derive(Clone, Copy, Debug, Default)]
pub struct OneClock {
    start_unix_ns: Option<i64>,
}

impl OneClock {
    /// Takes a segment's clock; returns whether it has just become the document's clock.
    pub fn take(&mut self, segment: &Segment) -> bool {
        let is_new = self.start_unix_ns.is_none() && segment.start_unix_ns.is_some();
        self.start_unix_ns = self.start_unix_ns.or(segment.start_unix_ns);
        is_new
    }

    /// A time of a segment on the document's clock.
    pub fn time_ns(self, segment: &Segment, time_ns: i64) -> i128 {
        let between = segment.start_unix_ns.zip(self.start_unix_ns);
        let later_ns = between.map_or(0, |(own, common)| i128::from(own) - i128::from(common));
        i128::from(time_ns) + later_ns
    }

    /// The wall time of the clock's start.
    pub const fn start_unix_ns(self) -> Option<i64> {
        self.start_unix_ns
    }
}

impl Measure {
    /// The number of a sample. Absent values are 0; a product that does not fit saturates.
    #[inline]
    #[must_use]
    pub fn of(self, segment: &Segment, sample: &Sample<'_>) -> i64 {
        match self {
            Self::Count => i64::try_from(sample.count).unwrap_or(i64::MAX),
            Self::Time => {
                let time = sample.count.saturating_mul(segment.period_ns.unwrap_or(0));
                i64::try_from(time).unwrap_or(i64::MAX)
            }
            Self::Value(column) => sample.values.get(column).copied().unwrap_or(0),
        }
    }
}

impl Segment {
    /// All numbers of its samples: their own values in order, then their count if they are counted, then the time they
    /// stand for if there is a period and no value is a time.
    pub fn measures(&self) -> impl Iterator<Item = (Measure, ValueType)> + '_ {
        let own = self.value_types.iter().enumerate();
        let own = own.map(|(column, value_type)| (Measure::Value(column), value_type.clone()));
        let is_counted = !self.is_uncounted && !self.value_types.iter().any(ValueType::is_samples);
        let count = is_counted.then(|| (Measure::Count, ValueType::samples()));
        let time = self.has_time().then(|| (Measure::Time, ValueType::time(self.mode)));
        own.chain(count).chain(time)
    }

    /// Whether count and period give the time that samples stand for.
    fn has_time(&self) -> bool {
        let is_time = |own: &ValueType| own.nanoseconds_per_unit().is_some();
        self.period_ns.is_some_and(|period_ns| period_ns > 0)
            && !self.is_uncounted
            && !self.value_types.iter().any(is_time)
    }

    /// The number that views show by default: the one that the source names, else its last value as in `go tool pprof`,
    /// else the time that samples stand for, else their count.
    #[must_use]
    pub fn default_measure(&self) -> Measure {
        let last = || self.value_types.len().checked_sub(1).map(Measure::Value);
        let time = || self.has_time().then_some(Measure::Time);
        self.default_measure.or_else(last).or_else(time).unwrap_or(Measure::Count)
    }

    /// The value type of a measure.
    #[must_use]
    pub fn value_type(&self, measure: Measure) -> ValueType {
        match measure {
            Measure::Count => ValueType::samples(),
            Measure::Time => ValueType::time(self.mode),
            Measure::Value(column) => self.value_types.get(column).cloned().unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_inputs_that_know_when_they_began_are_moved_to_the_first_of_them() {
        let mut clock = OneClock::default();
        let starting = |start_unix_ns| Segment { start_unix_ns, ..Segment::default() };
        let taken = [None, Some(100), Some(90), Some(i64::MIN), None].map(|start_unix_ns| {
            let segment = starting(start_unix_ns);
            (clock.take(&segment), clock.time_ns(&segment, 5))
        });
        let least = i128::from(i64::MIN) - 100 + 5;
        assert_eq!(taken, [(false, 5), (true, 5), (false, -5), (false, least), (false, 5)]);
        assert_eq!(clock.start_unix_ns(), Some(100));
    }
}
