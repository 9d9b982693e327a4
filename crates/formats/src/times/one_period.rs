//! The single sampling period of a document.

use crate::Losses;

/// The period of a document, in the unit of its format, and the number of samples with another one. The first known
/// period is the document's. Samples without a known period take the document's and are not counted as losses.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OnePeriod {
    period: Option<u64>,
    /// Whether the segment's samples have another period.
    is_other: bool,
    lost: u64,
}

impl OnePeriod {
    /// Begins a segment with `period`.
    pub(crate) fn segment(&mut self, period: Option<u64>) {
        self.period = self.period.or(period);
        self.is_other = period.is_some() && period != self.period;
    }

    /// Counts samples of the segment.
    #[inline]
    pub(crate) const fn sample(&mut self, count: u64) {
        if self.is_other {
            self.lost = self.lost.saturating_add(count);
        }
    }

    /// The document's period; `None` before one is known.
    pub(crate) const fn known(&self) -> Option<u64> {
        self.period
    }

    pub(crate) fn report(&self, losses: &mut Losses) {
        losses.add("sampling periods", self.lost);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_samples_of_another_known_period_are_lost() {
        let mut periods = OnePeriod::default();
        for (period, count) in [(None, 1), (Some(5), 10), (Some(7), 100), (None, 1000), (Some(5), 10_000)] {
            periods.segment(period);
            periods.sample(count);
        }
        let mut losses = Losses::default();
        periods.report(&mut losses);
        assert_eq!(losses.to_string(), "sampling periods dropped: 100");
        assert_eq!(periods.period, Some(5));
    }
}
