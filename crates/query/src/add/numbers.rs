//! The numbers of a segment's samples as cells, and the kinds of numbers in files.

use borehole_model::{Measure, Sample, Sampled, Segment, ValueType, Weigher};

use super::rows::RowCell;
use super::words::{ColumnWords, Word};
use crate::journal::ListedNumber;

/// The maximum number of kinds listed for a file.
pub(crate) const LISTED_NUMBERS: usize = 64;

/// The kind and the unit of a measure.
pub(super) type MeasureWords = (Word, Word);

/// The numbers of a segment's samples.
#[derive(Clone, Debug)]
pub(super) struct SampleNumbers {
    /// The default measure.
    pub(super) default: MeasureWords,
    pub(super) mode: Word,
    /// The measure of observations.
    pub(super) samples: MeasureWords,
    /// The number of observations of a sample; `None` if samples are not observations.
    observations: Option<Measure>,
    pub(super) has_time: bool,
    /// The other measures, and their indexes among the values.
    pub(super) measures: Vec<(MeasureWords, usize)>,
}

impl SampleNumbers {
    pub(super) fn of(segment: &Segment, words: &mut ColumnWords) -> Self {
        let of_samples = |(_, value_type): &(Measure, ValueType)| value_type.is_samples();
        let mut in_words =
            |value_type: &ValueType| (words.word(&value_type.kind), words.word(&value_type.unit));
        let measures = segment.value_types.iter().enumerate();
        let measures = measures.filter(|(_, value_type)| !value_type.is_samples());
        let measures = measures.map(|(place, value_type)| (in_words(value_type), place)).collect();
        let (default, samples) = (in_words(&default_value(segment)), in_words(&ValueType::samples()));
        Self {
            default,
            mode: words.word(segment.mode.name()),
            samples,
            observations: segment.measures().find(of_samples).map(|(measure, _)| measure),
            has_time: segment.measures().any(|(measure, _)| measure == Measure::Time),
            measures,
        }
    }

    /// The number of observations of a sample and the time they stand for; `None` if it is not an observation.
    pub(super) fn observed(&self, segment: &Segment, sample: &Sample<'_>) -> Option<(RowCell, RowCell)> {
        let count = self.observations?.of(segment, sample);
        let time_ns = self.has_time.then(|| Measure::Time.of(segment, sample));
        Some((RowCell::Int(count), RowCell::int(time_ns)))
    }
}

/// A kind of numbers in rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NumberWords {
    pub(super) measure: MeasureWords,
    pub(super) mode: Word,
    pub(super) is_default: bool,
    pub(super) has_time: bool,
}

/// The kinds of numbers in a file, each with its first time.
#[derive(Debug, Default)]
pub(super) struct FileNumbers {
    kinds: Vec<(NumberWords, i64)>,
    are_too_many: bool,
}

impl FileNumbers {
    #[inline]
    pub(super) fn see(&mut self, number: NumberWords, time_us: i64) {
        match self.kinds.iter().position(|(known, _)| *known == number) {
            Some(place) => self.kinds[place].1 = self.kinds[place].1.min(time_us),
            None if self.kinds.len() < LISTED_NUMBERS => self.kinds.push((number, time_us)),
            None => self.are_too_many = true,
        }
    }

    /// Lists all kinds in order; `None` if there are too many.
    pub(super) fn list(&self, words: &ColumnWords) -> Option<Vec<ListedNumber>> {
        let text = |word: Word| words.text(word).unwrap_or_default().to_owned();
        let number = |&(number, first_us): &(NumberWords, i64)| ListedNumber {
            kind: text(number.measure.0),
            unit: text(number.measure.1),
            mode: text(number.mode),
            is_default: number.is_default,
            has_time: number.has_time,
            first_us,
        };
        (!self.are_too_many).then(|| ListedNumber::merged(self.kinds.iter().map(number)))
    }
}

/// The default value type of a segment in reports: the number of samples for sampled profiles.
fn default_value(segment: &Segment) -> ValueType {
    let mut weigher = Weigher::new(None, Sampled::Count);
    weigher.segment(segment);
    let value_type = segment.value_type(weigher.measure().unwrap_or(Measure::Count));
    if value_type.is_samples() { ValueType::samples() } else { value_type }
}

#[cfg(test)]
mod tests {
    use borehole_model::Mode;

    use super::*;

    fn observed(segment: &Segment, values: &[i64]) -> (String, Option<(RowCell, RowCell)>) {
        let mut words = ColumnWords::default();
        let numbers = SampleNumbers::of(segment, &mut words);
        let sample = Sample { count: 3, values, ..Sample::default() };
        let [kind, unit] = [numbers.default.0, numbers.default.1].map(|word| words.text(word).unwrap());
        (format!("{kind}/{unit}"), numbers.observed(segment, &sample))
    }

    #[test]
    fn heap_records_are_not_observations() {
        let sampled = Segment { period_ns: Some(7), mode: Mode::Cpu, ..Segment::default() };
        assert_eq!(
            observed(&sampled, &[]),
            ("samples/count".into(), Some((RowCell::Int(3), RowCell::Int(21))))
        );
        let value_types = vec![ValueType::samples(), ValueType::new("cpu", "nanoseconds")];
        let of_pprof = Segment { value_types, is_uncounted: true, ..sampled };
        let expected = ("cpu/nanoseconds".into(), Some((RowCell::Int(2), RowCell::Absent)));
        assert_eq!(observed(&of_pprof, &[2, 14]), expected);
        let value_types = vec![ValueType::new("inuse_space", "bytes")];
        let heap = Segment { value_types, is_uncounted: true, ..Segment::default() };
        assert_eq!(observed(&heap, &[4096]), ("inuse_space/bytes".into(), None));
    }

    #[test]
    fn a_file_lists_its_kinds_up_to_a_limit() {
        let (mut words, mut numbers) = (ColumnWords::default(), FileNumbers::default());
        let number =
            |kind: Word| NumberWords { measure: (kind, 0), mode: 0, is_default: false, has_time: false };
        for (kind, time_us) in [(1, 9), (2, 8), (1, 7)] {
            words.word(&format!("w{kind}{time_us}"));
            numbers.see(number(kind), time_us);
        }
        let firsts = |numbers: &FileNumbers| {
            Some(numbers.list(&words)?.iter().map(|number| number.first_us).collect::<Vec<_>>())
        };
        assert_eq!(firsts(&numbers), Some(vec![8, 7]));
        (0..=64).for_each(|kind| numbers.see(number(kind), 1));
        assert_eq!(firsts(&numbers), None);
    }
}
