//! The duration of samples, for everything that draws time.

use crate::sample::Sample;
use crate::segment::Segment;
use crate::value::{Measure, Mode};

/// The duration of the samples of a segment.
///
/// The gap to the next sample is used only if nothing else is known: a thread that was not sampled in between was off CPU, did
/// not hold the GIL, or was not observed.
///
/// # Examples
///
/// ```
/// use borehole_model::{Lasting, Sample, Segment};
///
/// let segment = Segment { period_ns: Some(10_000_000), ..Segment::default() };
/// let lasting = Lasting::of(&segment);
/// assert_eq!(lasting.ns(&Sample { count: 3, ..Sample::default() }), Some(30_000_000));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Lasting {
    /// Their duration is one of their values.
    Value {
        /// The index of the value, 0-based.
        column: usize,
        /// Nanoseconds per unit of the value.
        factor: u64,
    },
    /// Their duration is their count times this period, in nanoseconds.
    Period(u64),
    /// They last until the next sample of their lane, because nothing else is known.
    #[default]
    UntilNext,
}

impl Lasting {
    /// The duration of the samples of a segment: their wall time if they have one, else their default value if it is a time, else
    /// their count times the period.
    #[must_use]
    pub fn of(segment: &Segment) -> Self {
        let types = &segment.value_types;
        let wall = types.iter().position(|own| own.kind == Mode::Wall.name());
        let shown = match segment.default_measure() {
            Measure::Value(column) => Some(column),
            Measure::Count | Measure::Time => None,
        };
        let is_time = |column: usize| {
            let factor = types.get(column)?.nanoseconds_per_unit()?;
            Some(Self::Value { column, factor })
        };
        let period = || segment.period_ns.filter(|&period_ns| period_ns > 0).map(Self::Period);
        let own = wall.and_then(is_time).or_else(|| shown.and_then(is_time));
        own.or_else(period).unwrap_or_default()
    }

    /// The duration of a sample in nanoseconds; `None` if it lasts until the next one. Negative values count as 0.
    #[inline]
    #[must_use]
    pub fn ns(self, sample: &Sample<'_>) -> Option<u64> {
        match self {
            Self::Value { column, factor } => {
                let value = sample.values.get(column).copied().unwrap_or(0);
                Some(u64::try_from(value).unwrap_or(0).saturating_mul(factor))
            }
            Self::Period(period_ns) => Some(period_ns.saturating_mul(sample.count)),
            Self::UntilNext => None,
        }
    }
}

/// Whether a sample that comes `gap_ns` after the previous one, which lasts `lasts_ns`, continues it without a break.
///
/// Samplers run late by a fraction of a period, so up to half a period is tolerated. After a whole period, a sample is
/// missing.
#[must_use]
pub const fn goes_on(gap_ns: u64, lasts_ns: u64) -> bool {
    gap_ns <= lasts_ns.saturating_add(lasts_ns / 2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::ValueType;

    #[test]
    fn a_sample_lasts_its_own_time_or_its_period() {
        let sample = Sample { count: 3, values: &[7, 9], ..Sample::default() };
        let of = |types: &[(&str, &str)], period_ns| {
            let value_types = types.iter().map(|&(kind, unit)| ValueType::new(kind, unit)).collect();
            Lasting::of(&Segment { value_types, period_ns, ..Segment::default() }).ns(&sample)
        };
        assert_eq!(of(&[], Some(10)), Some(30));
        assert_eq!(of(&[], None), None);
        assert_eq!(of(&[("wall", "us"), ("cpu", "ns")], Some(10)), Some(7000));
        assert_eq!(of(&[("objects", "count"), ("cpu", "ns")], Some(10)), Some(9));
        assert_eq!(of(&[("objects", "count"), ("space", "bytes")], None), None);
    }

    #[test]
    fn samples_late_by_less_than_half_a_period_continue_the_last() {
        assert_eq!([1000, 1500, 1501, 2000].map(|gap| goes_on(gap, 1000)), [true, true, false, false]);
    }
}
