//! Sample times: the clocks of several inputs, mapped to one.

use std::ops::RangeInclusive;

use borehole_model::Segment;

use crate::selection::TimeRange;

/// Maps the clocks of inputs to one that begins with the first sample.
#[derive(Clone, Debug, Default)]
pub(crate) struct CommonClock {
    /// The offset to add to times of the current input; `None` before its first sample.
    offset_ns: Option<i64>,
    has_begun: bool,
    /// The wall time of the origin.
    pub(crate) origin_unix_ns: Option<i64>,
}

impl CommonClock {
    /// Begins another input, with a clock of its own.
    pub(crate) const fn restart(&mut self) {
        self.offset_ns = None;
    }

    /// The time since the origin. Inputs without a known wall time begin at the origin.
    #[inline]
    pub(crate) fn since_origin(&mut self, time_ns: i64, segment: &Segment) -> i64 {
        let offset_ns = match self.offset_ns {
            Some(offset_ns) => offset_ns,
            None => self.begin(time_ns, segment),
        };
        time_ns.saturating_add(offset_ns)
    }

    #[cold]
    fn begin(&mut self, time_ns: i64, segment: &Segment) -> i64 {
        let start = segment.start_unix_ns;
        if !std::mem::replace(&mut self.has_begun, true) {
            self.origin_unix_ns = start.map(|start| start.saturating_add(time_ns));
        }
        let between = start.zip(self.origin_unix_ns).map(|(start, origin)| start.saturating_sub(origin));
        let offset_ns = between.unwrap_or(time_ns.saturating_neg());
        self.offset_ns = Some(offset_ns);
        offset_ns
    }
}

/// The time that the samples of a profile cover, divided into slices.
///
/// Units: nanoseconds since the first sample read. Times are negative if a clock went backwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timespan {
    /// The start of the first slice.
    pub start_ns: i64,
    /// The length of a slice.
    pub slice_ns: u64,
    /// The number of slices.
    pub slices: usize,
    /// The wall time of the first sample, in nanoseconds since 1970 (UTC), if known.
    pub origin_unix_ns: Option<i64>,
}

impl Timespan {
    pub(crate) fn new(shift: u32, first: i64, last: i64, origin_unix_ns: Option<i64>) -> Self {
        Self {
            // A used slice never starts before the earliest representable time.
            start_ns: first << shift,
            slice_ns: 1 << shift,
            slices: usize::try_from(last - first + 1).unwrap_or(0),
            origin_unix_ns,
        }
    }

    /// Joins slices so that at most `most` remain. Returns how many become one, a power of two.
    pub(crate) fn join(&mut self, most: usize) -> usize {
        let joined = self.slices.div_ceil(most.max(1)).max(1).next_power_of_two();
        self.slice_ns = self.slice_ns.saturating_mul(joined as u64);
        self.slices = self.slices.div_ceil(joined);
        joined
    }

    /// The 0-based index of a profile's slice; `None` if it is outside.
    pub(crate) fn place(&self, slice: i64) -> Option<usize> {
        let first = self.start_ns >> self.slice_ns.trailing_zeros();
        usize::try_from(slice.checked_sub(first)?).ok().filter(|&place| place < self.slices)
    }

    /// The whole time.
    #[must_use]
    pub fn whole(&self) -> TimeRange {
        self.range(0..=self.slices.saturating_sub(1))
    }

    /// The time of a range of slices, by 0-based index.
    #[must_use]
    pub fn range(&self, slices: RangeInclusive<usize>) -> TimeRange {
        let start = |slice: usize| {
            let offset = u64::try_from(slice).unwrap_or(u64::MAX).saturating_mul(self.slice_ns);
            self.start_ns.saturating_add_unsigned(offset)
        };
        TimeRange { start_ns: start(*slices.start()), end_ns: start(slices.end().saturating_add(1)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(start_unix_ns: Option<i64>) -> Segment {
        Segment { start_unix_ns, ..Segment::default() }
    }

    #[test]
    fn inputs_are_aligned_by_wall_time_or_begin_together() {
        let mut clock = CommonClock::default();
        assert_eq!(clock.since_origin(50, &segment(Some(1000))), 0);
        assert_eq!(clock.since_origin(40, &segment(Some(1000))), -10);
        assert_eq!(clock.origin_unix_ns, Some(1050));
        clock.restart();
        assert_eq!(clock.since_origin(7, &segment(Some(1100))), 57);
        clock.restart();
        assert_eq!(clock.since_origin(700, &segment(None)), 0);
        assert_eq!(clock.since_origin(701, &segment(None)), 1);
    }

    #[test]
    fn ranges_are_made_of_slices() {
        let span = Timespan::new(20, -1, 3, None);
        assert_eq!((span.start_ns, span.slices), (-(1 << 20), 5));
        assert_eq!(span.whole(), TimeRange { start_ns: -(1 << 20), end_ns: 4 << 20 });
        assert_eq!(span.whole().slices(20), (-1, 3));
        assert_eq!(span.range(1..=1).slices(20), (0, 0));
    }
}
