//! The numbers of samples: value types, and the one that a view or a single-value format adds up.

use std::fmt;

use borehole_text::{named, nanoseconds_per};

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

/// A text of the form `kind/unit`.
#[cfg(feature = "serde")]
impl serde::Serialize for ValueType {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
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
    pub const ALL: &'static [Self] = &[Self::Wall, Self::Cpu, Self::Gil, Self::Exception];

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
        Self::ALL.iter().copied().find(|mode| mode.name() == name)
    }
}

named!(Mode, "mode");

#[cfg(feature = "serde")]
impl serde::Serialize for Mode {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Sample, Segment};

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
    fn modes_are_read_back_by_their_names() {
        for &mode in Mode::ALL {
            assert_eq!((mode.to_string().parse(), Mode::named(mode.name())), (Ok(mode), Some(mode)));
        }
        let error = "gpu".parse::<Mode>().unwrap_err();
        assert_eq!(error.to_string(), "unknown mode: expected one of wall, cpu, gil, exception, found gpu");
    }

    #[test]
    fn numbers_that_do_not_fit_stay_at_the_largest() {
        let segment = Segment { period_ns: Some(u64::MAX), ..Segment::default() };
        let sample = Sample { count: 3, values: &[-7], ..Sample::default() };
        let numbers = [Measure::Count, Measure::Time, Measure::Value(0), Measure::Value(1)];
        assert_eq!(numbers.map(|measure| measure.of(&segment, &sample)), [3, i64::MAX, -7, 0]);
    }
}
