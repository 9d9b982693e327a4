//! The single number that views and single-value formats take from each sample.

use std::{error, fmt, io};

use crate::sample::Sample;
use crate::segment::Segment;
use crate::sink::Context;
use crate::value::{Measure, Mode, ValueType};

/// The default number of a sampled profile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sampled {
    /// The time that samples stand for if there is a period, otherwise their count.
    #[default]
    Time,
    /// Their count, for formats made of counts.
    Count,
}

/// Picks one number of each sample, so that only numbers of one kind are added up.
///
/// The first profile with samples decides the kind, by its [default](Segment::default_measure), unless a user asks for
/// one by name. Samples without such a number weigh nothing and are counted as [hidden](Weigher::hidden). Times are in
/// nanoseconds, whatever their unit in the source.
///
/// Pass it each segment, then weigh the segment's samples.
///
/// # Examples
///
/// ```
/// use borehole_model::{Context, Sample, Sampled, Segment, Tables, ValueType, Weigher};
///
/// let tables = Tables::default();
/// let cpu = Segment { value_types: vec![ValueType::new("cpu", "ms")], is_uncounted: true, ..Segment::default() };
/// let heap = Segment { value_types: vec![ValueType::new("heap", "bytes")], is_uncounted: true, ..Segment::default() };
/// let mut weigher = Weigher::new(None, Sampled::Time);
/// let sample = Sample { count: 1, values: &[2], ..Sample::default() };
/// let mut weights = Vec::new();
/// for segment in [&cpu, &heap] {
///     weigher.segment(segment);
///     weights.push(weigher.weigh(Context { tables: &tables, segment }, &sample));
/// }
/// assert_eq!(weights, [Some(2_000_000), None]);
/// assert_eq!(weigher.hidden().next().unwrap().0.to_string(), "heap/bytes");
/// ```
#[derive(Clone, Debug, Default)]
pub struct Weigher {
    asked: Option<String>,
    sampled: Sampled,
    /// The kind to add up, known after the first sample.
    chosen: Option<Chosen>,
    /// The weights of the current segment.
    current: Current,
    /// Other kinds, and how many samples have them.
    hidden: Vec<(ValueType, u64)>,
    more_hidden: u64,
    /// All kinds found, at most [`Weigher::MOST_HIDDEN`].
    kinds: Vec<ValueType>,
}

/// The kind of numbers to add up.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Chosen {
    value_type: ValueType,
    /// For counts of observations: the mode of the samples.
    mode: Option<Mode>,
}

/// The weights of a segment's samples: a measure times a factor.
#[derive(Clone, Debug, Default)]
struct Current {
    measure: Option<Measure>,
    factor: i64,
    /// The kind; taken by the first sample that is weighed.
    kind: Option<Chosen>,
    /// The row of `hidden`, if the segment's samples have no such number.
    hidden_row: Option<usize>,
}

impl Weigher {
    /// The maximum number of other kinds listed; further ones are counted together.
    pub const MOST_HIDDEN: usize = 64;

    /// Creates a weigher of the value type `asked` for, or else of the first profile's default.
    #[must_use]
    pub fn new(asked: Option<&str>, sampled: Sampled) -> Self {
        Self { asked: asked.map(str::to_owned), sampled, ..Self::default() }
    }

    /// Begins a segment.
    pub fn segment(&mut self, segment: &Segment) {
        for (_, value_type) in segment.measures() {
            if self.kinds.len() < Self::MOST_HIDDEN && !self.kinds.contains(&value_type) {
                self.kinds.push(value_type);
            }
        }
        self.current = match self.kind_of(segment) {
            Some((measure, kind)) => {
                let (value_type, factor) = kind.value_type.shown();
                let kind = Chosen { value_type, ..kind };
                Current { measure: Some(measure), factor, kind: Some(kind), hidden_row: None }
            }
            None => Current::default(),
        };
    }

    /// The measure of a segment that has the chosen kind.
    fn kind_of(&self, segment: &Segment) -> Option<(Measure, Chosen)> {
        let kind = |measure| self.kind(segment, measure);
        match (&self.chosen, &self.asked) {
            (Some(chosen), _) => {
                let mut all = segment.measures().map(|(measure, _)| (measure, kind(measure)));
                all.find(|(_, kind)| {
                    Chosen { value_type: kind.value_type.shown().0, ..kind.clone() } == *chosen
                })
            }
            (None, Some(asked)) => {
                let mut all = segment.measures();
                let found = all.find(|(_, value_type)| value_type.answers_to(asked))?;
                Some((found.0, kind(found.0)))
            }
            (None, None) => {
                let measure = self.default_of(segment);
                Some((measure, kind(measure)))
            }
        }
    }

    fn default_of(&self, segment: &Segment) -> Measure {
        match segment.default_measure() {
            Measure::Time if self.sampled == Sampled::Count => Measure::Count,
            measure => measure,
        }
    }

    fn kind(&self, segment: &Segment, measure: Measure) -> Chosen {
        let value_type = segment.value_type(measure);
        // A user who asks for samples wants those of all modes.
        let mode = (value_type.is_samples() && self.asked.is_none()).then_some(segment.mode);
        Chosen { value_type, mode }
    }

    /// The number of a sample of the current segment; `None` if it has none of the chosen kind.
    #[inline]
    pub fn weigh(&mut self, at: Context<'_>, sample: &Sample<'_>) -> Option<i64> {
        let Some(measure) = self.current.measure else {
            self.hide(at.segment, sample.count);
            return None;
        };
        if self.current.kind.is_some() {
            self.choose();
        }
        Some(measure.of(at.segment, sample).saturating_mul(self.current.factor))
    }

    /// Fixes the kind of the current segment for all that follow.
    #[cold]
    fn choose(&mut self) {
        let kind = self.current.kind.take();
        self.chosen = self.chosen.take().or(kind);
    }

    #[cold]
    fn hide(&mut self, segment: &Segment, count: u64) {
        let row = match self.current.hidden_row {
            Some(row) => row,
            None => self.hidden_row(&segment.value_type(segment.default_measure())),
        };
        self.current.hidden_row = Some(row);
        let sum = self.hidden.get_mut(row).map_or(&mut self.more_hidden, |(_, sum)| sum);
        *sum = sum.saturating_add(count);
    }

    fn hidden_row(&mut self, value_type: &ValueType) -> usize {
        let known = self.hidden.iter().position(|(hidden, _)| hidden == value_type);
        known.unwrap_or_else(|| {
            if self.hidden.len() < Self::MOST_HIDDEN {
                self.hidden.push((value_type.clone(), 0));
                return self.hidden.len() - 1;
            }
            Self::MOST_HIDDEN
        })
    }

    /// The origin of the number of the current segment's samples; `None` if they have none.
    #[must_use]
    pub const fn measure(&self) -> Option<Measure> {
        self.current.measure
    }

    /// The value type weighed; `None` before the first sample with such a number.
    #[must_use]
    pub fn value_type(&self) -> Option<&ValueType> {
        self.chosen.as_ref().map(|chosen| &chosen.value_type)
    }

    /// The quantity that the weights stand for: the kind of their value type, or for counts of observations the mode.
    ///
    /// Profiles with equal quantities can be compared, because a time and the samples that stand for it have equal shares.
    #[must_use]
    pub fn tells_of(&self) -> Option<&str> {
        let Chosen { value_type, mode } = self.chosen.as_ref()?;
        Some(match mode {
            Some(mode) => mode.name(),
            None => &value_type.kind,
        })
    }

    /// The value type that the user asked for.
    #[must_use]
    pub fn asked(&self) -> Option<&str> {
        self.asked.as_deref()
    }

    /// The value types of all segments so far, in order of first appearance, with the units of their sources: the ones that can
    /// be asked for. At most [`Weigher::MOST_HIDDEN`] are listed.
    #[must_use]
    pub fn kinds(&self) -> &[ValueType] {
        &self.kinds
    }

    /// The value types that are not weighed.
    pub fn others(&self) -> impl Iterator<Item = &ValueType> {
        let is_other = |kind: &&ValueType| Some(&kind.shown().0) != self.value_type();
        self.kinds.iter().filter(is_other)
    }

    /// Checks that the value type asked for exists. Before the first segment there is nothing to check.
    ///
    /// # Errors
    /// If there were segments and none of them has such a value type.
    pub fn check(&self) -> Result<(), UnknownValueType> {
        let Some(asked) = self.asked.as_deref().filter(|_| !self.kinds.is_empty()) else { return Ok(()) };
        if self.chosen.is_some() || self.kinds.iter().any(|kind| kind.answers_to(asked)) {
            return Ok(());
        }
        Err(UnknownValueType { asked: asked.to_owned(), known: self.kinds.clone() })
    }

    /// The default value types of profiles that are not weighed, and how many samples each has.
    pub fn hidden(&self) -> impl Iterator<Item = (&ValueType, u64)> {
        self.hidden.iter().map(|(value_type, samples)| (value_type, *samples))
    }

    /// The number of samples that are not weighed.
    #[must_use]
    pub fn hidden_samples(&self) -> u64 {
        self.hidden().fold(self.more_hidden, |sum, (_, samples)| sum.saturating_add(samples))
    }
}

/// No profile has the value type that was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnknownValueType {
    /// The name that was asked for.
    pub asked: String,
    /// The available value types: see [`Weigher::kinds`].
    pub known: Vec<ValueType>,
}

impl fmt::Display for UnknownValueType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("unknown value type: expected one of ")?;
        for (place, known) in self.known.iter().enumerate() {
            write!(f, "{}{known}", if place > 0 { ", " } else { "" })?;
        }
        write!(f, ", found {}", self.asked)
    }
}

impl error::Error for UnknownValueType {}

impl From<UnknownValueType> for io::Error {
    fn from(error: UnknownValueType) -> Self {
        Self::new(io::ErrorKind::InvalidInput, error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::Tables;

    fn weigh(weigher: &mut Weigher, segments: &[Segment], values: &[i64]) -> Vec<Option<i64>> {
        let tables = Tables::default();
        let sample = Sample { count: 4, values, ..Sample::default() };
        let mut weights = Vec::new();
        for segment in segments {
            weigher.segment(segment);
            weights.push(weigher.weigh(Context { tables: &tables, segment }, &sample));
        }
        weights
    }

    fn sampled(mode: Mode, period_ns: Option<u64>) -> Segment {
        Segment { mode, period_ns, ..Segment::default() }
    }

    fn valued(types: &[(&str, &str)]) -> Segment {
        let value_types = types.iter().map(|&(kind, unit)| ValueType::new(kind, unit)).collect();
        Segment { value_types, is_uncounted: true, ..Segment::default() }
    }

    #[test]
    fn times_of_one_mode_are_added_up_and_those_of_another_are_not() {
        let segments = [
            sampled(Mode::Wall, Some(5)),
            sampled(Mode::Cpu, Some(5)),
            valued(&[("wall", "us")]),
            sampled(Mode::Wall, Some(7)),
        ];
        let mut weigher = Weigher::new(None, Sampled::Time);
        assert_eq!(weigh(&mut weigher, &segments, &[3]), [Some(20), None, Some(3000), Some(28)]);
        assert_eq!(weigher.value_type().unwrap().to_string(), "wall/nanoseconds");
        assert_eq!(weigher.hidden().collect::<Vec<_>>(), [(&ValueType::time(Mode::Cpu), 4)]);
    }

    #[test]
    fn formats_of_counts_count_samples_of_one_mode_whether_or_not_there_is_a_period() {
        let segments = [
            sampled(Mode::Wall, Some(5)),
            sampled(Mode::Wall, None),
            sampled(Mode::Cpu, None),
            valued(&[("a", "b")]),
        ];
        let mut weigher = Weigher::new(None, Sampled::Count);
        assert_eq!(weigh(&mut weigher, &segments, &[3]), [Some(4), Some(4), None, None]);
        let mut all = Weigher::new(Some("samples"), Sampled::Time);
        assert_eq!(weigh(&mut all, &segments, &[3]), [Some(4), Some(4), Some(4), None]);
    }

    #[test]
    fn a_requested_kind_is_found_in_every_profile_that_has_it() {
        let segments = [valued(&[("cpu", "ns")]), valued(&[("objects", "count"), ("space", "bytes")])];
        let mut weigher = Weigher::new(Some("space/bytes"), Sampled::Time);
        assert_eq!(weigh(&mut weigher, &segments, &[3, -9]), [None, Some(-9)]);
        let mut nobody = Weigher::new(Some("spaces"), Sampled::Time);
        assert_eq!(weigh(&mut nobody, &segments, &[3, -9]), [None, None]);
        assert_eq!((nobody.value_type(), nobody.hidden_samples()), (None, 8));
        assert_eq!(weigher.check(), Ok(()));
        let error = nobody.check().unwrap_err();
        let message = "unknown value type: expected one of cpu/ns, objects/count, space/bytes, found spaces";
        assert_eq!(error.to_string(), message);
        let error = io::Error::from(error);
        assert_eq!((error.kind(), error.to_string().as_str()), (io::ErrorKind::InvalidInput, message));
        let kinds: Vec<_> = weigher.kinds().iter().map(ValueType::to_string).collect();
        assert_eq!(kinds, ["cpu/ns", "objects/count", "space/bytes"]);
        assert_eq!(Weigher::new(Some("spaces"), Sampled::Time).check(), Ok(()));
    }

    #[test]
    fn kinds_beyond_the_limit_are_counted_together() {
        let segments: Vec<_> =
            (0..Weigher::MOST_HIDDEN + 9).map(|kind| valued(&[(&kind.to_string(), "count")])).collect();
        let mut weigher = Weigher::new(None, Sampled::Time);
        weigh(&mut weigher, &segments, &[1]);
        assert_eq!(weigher.hidden().count(), Weigher::MOST_HIDDEN);
        assert_eq!(weigher.hidden_samples(), 4 * (Weigher::MOST_HIDDEN as u64 + 8));
    }
}
