//! The numbers of samples: value types, and the one that a view or a single-value format adds up.

use std::fmt;

use crate::sample::Sample;
use crate::segment::Segment;

/// The kind and unit of a value.
///
/// # Examples
///
/// ```
/// use borehole_model::ValueType;
///
/// let cpu = ValueType::new("cpu", "milliseconds");
/// assert_eq!((cpu.to_string().as_str(), cpu.nanoseconds_per_unit()), ("cpu/milliseconds", Some(1_000_000)));
/// assert!(cpu.answers_to("cpu") && cpu.answers_to("cpu/milliseconds") && !cpu.answers_to("wall"));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ValueType {
    /// The kind, such as `wall`, `cpu` or `alloc_space`.
    pub kind: String,
    /// The unit, such as `nanoseconds`, `bytes` or `count`.
    pub unit: String,
}

impl ValueType {
    /// Creates a value type.
    #[must_use]
    pub fn new(kind: impl Into<String>, unit: impl Into<String>) -> Self {
        Self { kind: kind.into(), unit: unit.into() }
    }

    /// The value type of observations: `samples/count`.
    #[must_use]
    pub fn samples() -> Self {
        Self::new("samples", "count")
    }

    /// The value type of the time that samples of `mode` stand for, in nanoseconds.
    #[must_use]
    pub fn time(mode: Mode) -> Self {
        Self::new(mode.name(), "nanoseconds")
    }

    /// Nanoseconds per unit; `None` if the value is not a time.
    ///
    /// Source: google/pprof, `internal/measurement/measurement.go`: the names that the tool accepts as units of time.
    #[must_use]
    pub fn nanoseconds_per_unit(&self) -> Option<u64> {
        nanoseconds_per(&self.unit)
    }

    /// Whether the values count observations.
    #[must_use]
    pub fn is_samples(&self) -> bool {
        matches!(&*self.kind, "samples" | "sample") && self.unit == "count"
    }

    /// Whether `name` selects this type: by its kind, or by kind and unit.
    #[must_use]
    pub fn answers_to(&self, name: &str) -> bool {
        let with_unit = name.strip_prefix(&*self.kind).and_then(|rest| rest.strip_prefix('/'));
        name == self.kind || with_unit == Some(&*self.unit)
    }

    /// This type with the unit that views show, and the factor for its values: times become nanoseconds.
    #[must_use]
    pub fn shown(&self) -> (Self, i64) {
        match self.nanoseconds_per_unit() {
            Some(factor) => {
                let unit = "nanoseconds".to_owned();
                (Self { kind: self.kind.clone(), unit }, i64::try_from(factor).unwrap_or(1))
            }
            None => (self.clone(), 1),
        }
    }
}

impl fmt::Display for ValueType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.kind, self.unit)
    }
}

/// Nanoseconds per unit of time; `None` for other units.
///
/// Source: google/pprof, `internal/measurement/measurement.go`: the names that the tool accepts as units of time.
#[must_use]
pub fn nanoseconds_per(unit: &str) -> Option<u64> {
    match unit {
        "nanoseconds" | "nanosecond" | "ns" => Some(1),
        "microseconds" | "microsecond" | "us" => Some(1_000),
        "milliseconds" | "millisecond" | "ms" => Some(1_000_000),
        "seconds" | "second" | "s" => Some(1_000_000_000),
        _ => None,
    }
}

/// The clock that a sampler follows: it defines what its samples times their period measure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Mode {
    /// Elapsed time.
    #[default]
    Wall,
    /// Time on a CPU.
    Cpu,
    /// Time while holding the GIL.
    Gil,
    /// Time with an exception in flight.
    Exception,
}

impl Mode {
    /// All modes.
    pub const ALL: [Self; 4] = [Self::Wall, Self::Cpu, Self::Gil, Self::Exception];

    /// The name, which is also the kind of its [value type](ValueType::time).
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Wall => "wall",
            Self::Cpu => "cpu",
            Self::Gil => "gil",
            Self::Exception => "exception",
        }
    }

    /// The mode with a name; `None` if there is none.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.name() == name)
    }
}

/// The origin of a sample's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Measure {
    /// Its count of observations.
    Count,
    /// Its count times the period, in nanoseconds.
    Time,
    /// One of its values, by 0-based index.
    Value(usize),
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

    fn types(segment: &Segment) -> Vec<String> {
        segment.measures().map(|(_, value_type)| value_type.to_string()).collect()
    }

    fn default_of(segment: &Segment) -> String {
        segment.value_type(segment.default_measure()).to_string()
    }

    #[test]
    fn sampled_profiles_have_a_count_and_with_a_period_a_time() {
        let counted = Segment::default();
        assert_eq!(
            (types(&counted), default_of(&counted)),
            (vec!["samples/count".to_owned()], "samples/count".into())
        );
        let cpu = Segment { period_ns: Some(5), mode: Mode::Cpu, ..Segment::default() };
        assert_eq!(types(&cpu), ["samples/count", "cpu/nanoseconds"]);
        assert_eq!(default_of(&cpu), "cpu/nanoseconds");
    }

    #[test]
    fn a_heap_profile_is_not_given_values_that_it_does_not_have() {
        let value_types =
            vec![ValueType::new("inuse_objects", "count"), ValueType::new("inuse_space", "bytes")];
        let heap =
            Segment { value_types, is_uncounted: true, period_ns: Some(524_288), ..Segment::default() };
        assert_eq!(types(&heap), ["inuse_objects/count", "inuse_space/bytes"]);
        assert_eq!(default_of(&heap), "inuse_space/bytes");
        let named = Segment { default_measure: Some(Measure::Value(0)), ..heap };
        assert_eq!(default_of(&named), "inuse_objects/count");
    }

    #[test]
    fn numbers_that_do_not_fit_stay_at_the_largest() {
        let segment = Segment { period_ns: Some(u64::MAX), ..Segment::default() };
        let sample = Sample { count: 3, values: &[-7], ..Sample::default() };
        let numbers = [Measure::Count, Measure::Time, Measure::Value(0), Measure::Value(1)];
        assert_eq!(numbers.map(|measure| measure.of(&segment, &sample)), [3, i64::MAX, -7, 0]);
    }
}
