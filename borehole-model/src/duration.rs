//! How long samples last, for all that draw time.

use crate::sample::Sample;
use crate::segment::Segment;
use crate::value::{Measure, Mode};

/// How long the samples of a segment last.
///
/// The time until the next sample says nothing where that is known: a thread that was not sampled in between was not on a CPU,
/// or did not have the GIL, or was not looked at.
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
    /// As long as one of their values says.
    Value {
        /// The value, 0-based.
        column: usize,
        /// How many nanoseconds its unit has.
        factor: u64,
    },
    /// As long as their count times the period, in nanoseconds.
    Period(u64),
    /// Until the next sample of their lane, for nothing else is known.
    #[default]
    UntilNext,
}

impl Lasting {
    /// How long the samples of a segment last: their own wall time, or else the time that is their default value, or else their
    /// count times the period.
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

    /// How long a sample lasts, in nanoseconds; `None` where only the next one says. Values below 0 last no time.
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

/// Whether a sample that comes `gap_ns` after the one before it, which lasts `lasts_ns`, goes on where that one ends: samplers
/// are late by some of a period, and a whole period later one sample is missing.
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
    fn what_is_late_by_less_than_half_a_period_goes_on() {
        assert_eq!([1000, 1500, 1501, 2000].map(|gap| goes_on(gap, 1000)), [true, true, false, false]);
    }
}
