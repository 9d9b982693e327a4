//! The roles of a document's sample types: a count, a period, and values.
//!
//! Count and time are taken out only if the exporter restores them in their places, so that a re-exported profile has
//! the columns that it had.

use borehole_model::{Measure, Mode, ValueType};

use super::layout::{PERIODS_COMMENT, SHOWN_PERIODS};
use super::read::{PprofDocument, PprofSample, PprofSamples};
use crate::Error;
use crate::symbols::resolve::SymbolDocument as _;
use crate::times::stated_period::StatedPeriod;

/// The roles of the sample types.
#[derive(Debug)]
pub(super) struct SampleRoles {
    /// The column that counts samples. It may be among the values too.
    pub(super) count: Option<usize>,
    /// The column that implies the period of samples.
    time: Option<TimeColumn>,
    /// The columns kept as values, and their types.
    pub(super) own: Vec<usize>,
    pub(super) value_types: Vec<ValueType>,
    /// The period of the first samples.
    pub(super) period_ns: Option<u64>,
    pub(super) mode: Mode,
    /// The document's default measure.
    pub(super) default_measure: Option<Measure>,
    /// The document's period.
    stated: StatedPeriod,
}

impl SampleRoles {
    pub(super) fn choose(document: &PprofDocument, samples: &PprofSamples) -> Result<Self, Error> {
        let types: Result<Vec<_>, Error> =
            document.sample_types.iter().map(|&names| document.value_type(names, 0)).collect();
        let types = types?;
        let stated = StatedPeriod {
            period: document.period,
            period_type: document.value_type(document.period_type, 0)?,
        };
        let mode = stated.mode_with(&types);
        let count = types.iter().position(ValueType::is_samples);
        let time = types.iter().position(|own| *own == ValueType::time(mode));
        let periods = NamedPeriods::of(document, &stated)?;
        let survey = CountSurvey::of(samples, count, time, &periods);
        let period_ns = survey.derived.map_or_else(|| periods.first(), DerivedPeriod::period_ns);
        let is_derived = time == Some(1) && survey.is_derived();
        let counts_first = survey.is_counted && count == Some(0) && types[0] == ValueType::samples();
        let own_start = if is_derived { 2 } else { 1 };
        let default = document.text(document.default_sample_type, 0)?;
        let default = types.iter().position(|own| own.kind == default);
        let shows_count = default.or(types.len().checked_sub(1)) == count;
        let adds_time = (is_derived || period_ns.is_some()) && !shows_count;
        let is_implied = counts_first && goes_without_saying(&types[own_start..], is_derived, adds_time);
        let own: Vec<_> = (if is_implied { own_start } else { 0 }..types.len()).collect();
        let mut columns = Self {
            count: count.filter(|_| survey.is_counted),
            time: time.filter(|_| is_implied && is_derived).map(|column| TimeColumn { column, periods }),
            value_types: own.iter().map(|&column| types[column].clone()).collect(),
            own,
            period_ns,
            mode,
            default_measure: None,
            stated,
        };
        // Samples with a period also have a time, which would be shown.
        let default = default.or(count.filter(|_| shows_count && is_implied && period_ns.is_some()));
        columns.default_measure = default.map(|column| columns.measure(column));
        Ok(columns)
    }

    /// The measure that holds the number of a column.
    fn measure(&self, column: usize) -> Measure {
        match self.own.binary_search(&column) {
            Ok(own) => Measure::Value(own),
            Err(_) if self.count == Some(column) => Measure::Count,
            Err(_) => Measure::Time,
        }
    }

    /// The period of a sample.
    pub(super) fn period_ns(&self, record: &PprofSample) -> Option<u64> {
        let time = self.time.as_ref().zip(self.count);
        time.map_or(self.period_ns, |(time, count)| time.period_ns(count, record))
    }

    pub(super) fn has_periods(&self) -> bool {
        self.time.as_ref().is_some_and(|time| time.periods.0.len() > 1)
    }

    /// The period as metadata, if the segments do not imply it.
    pub(super) fn period_metadata(&self) -> Option<String> {
        let holds = self.period_ns.is_some() || self.has_periods();
        self.stated.metadata(self.mode, &self.value_types, holds)
    }
}

/// Whether the exporter would put exactly a count, and a time if `with_time`, before these values. It adds no time to a
/// time, nor to a count that is the default.
fn goes_without_saying(own: &[ValueType], with_time: bool, adds_time: bool) -> bool {
    let has_time = own.iter().any(|own| own.nanoseconds_per_unit().is_some());
    (adds_time && !has_time) == with_time && !own.iter().any(ValueType::is_samples)
}

/// The findings of a pass over all samples.
struct CountSurvey {
    /// Whether every record with values counts samples.
    is_counted: bool,
    /// The period of the first sample, or `NoneNamed` once one has none.
    derived: Option<DerivedPeriod>,
    has_period: bool,
}

impl CountSurvey {
    /// Surveys the samples. A malformed sample is reported later, when it is delivered.
    fn of(samples: &PprofSamples, count: Option<usize>, time: Option<usize>, periods: &NamedPeriods) -> Self {
        let mut survey = Self { is_counted: count.is_some(), derived: None, has_period: false };
        samples.look_at(|sample| {
            let value = |column: Option<usize>| column.and_then(|index| sample.values.get(index).copied());
            // A difference of two profiles has negative counts; other documents measure samples that they have not
            // counted.
            if value(count).is_some_and(|count| count < 0 || (count == 0 && has_values(sample))) {
                survey.is_counted = false;
            }
            let Some(time) = value(time) else { return };
            let this = value(count).map_or(DerivedPeriod::NoneNamed, |count| periods.derive(count, time));
            survey.has_period |= matches!(this, DerivedPeriod::Period(_));
            if survey.derived.is_none() || this == DerivedPeriod::NoneNamed {
                survey.derived = Some(this);
            }
        });
        survey
    }

    /// Whether the time is the count times a period, in every sample. Otherwise multiplying by a period would give
    /// another time than the stated one.
    fn is_derived(&self) -> bool {
        self.is_counted
            && self.derived != Some(DerivedPeriod::NoneNamed)
            && (self.has_period || self.derived.is_none())
    }
}

fn has_values(sample: &PprofSample) -> bool {
    sample.values.iter().any(|&value| value != 0)
}

/// The column of times that are counts times a period, with the periods.
#[derive(Debug)]
struct TimeColumn {
    column: usize,
    periods: NamedPeriods,
}

impl TimeColumn {
    /// The period of a sample; `count` is the column of counts.
    fn period_ns(&self, count: usize, record: &PprofSample) -> Option<u64> {
        self.periods.derive(record.values[count], record.values[self.column]).period_ns()
    }
}

/// The period of samples, derived from their count and time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DerivedPeriod {
    /// A period in nanoseconds.
    Period(u64),
    /// An unknown period: the samples take no time.
    Unknown,
    /// No period that the file names.
    NoneNamed,
}

impl DerivedPeriod {
    const fn period_ns(self) -> Option<u64> {
        match self {
            Self::Period(period_ns) => Some(period_ns),
            Self::Unknown | Self::NoneNamed => None,
        }
    }
}

/// The periods that a file names, its own first.
#[derive(Debug)]
struct NamedPeriods(Vec<u64>);

impl NamedPeriods {
    fn of(document: &PprofDocument, stated: &StatedPeriod) -> Result<Self, Error> {
        let mut periods: Vec<_> = stated.ns().into_iter().collect();
        for &comment in &document.comments {
            let comment = str::from_utf8(document.string(comment, 0)?).unwrap_or_default();
            let listed = comment.strip_prefix(PERIODS_COMMENT).unwrap_or_default();
            let listed = listed.split(',').filter_map(|period| period.parse().ok());
            for period in listed.take(SHOWN_PERIODS) {
                // Each sample is compared with each period.
                if period > 0 && periods.len() <= SHOWN_PERIODS && !periods.contains(&period) {
                    periods.push(period);
                }
            }
        }
        Ok(Self(periods))
    }

    fn first(&self) -> Option<u64> {
        self.0.first().copied()
    }

    /// The period of `count` samples that take `time`.
    fn derive(&self, count: i64, time: i64) -> DerivedPeriod {
        match (self.first(), time) {
            (None, _) => DerivedPeriod::NoneNamed,
            (Some(first), 0) if count == 0 => DerivedPeriod::Period(first),
            (Some(_), 0) => DerivedPeriod::Unknown,
            (Some(_), _) => {
                let named = self.0.iter().find(|&&period| time_ns(count, period) == time);
                named.map_or(DerivedPeriod::NoneNamed, |&period| DerivedPeriod::Period(period))
            }
        }
    }
}

/// The time of `count` samples, clamped as the exporter clamps it.
fn time_ns(count: i64, period_ns: u64) -> i64 {
    let product = i128::from(count) * i128::from(period_ns);
    i64::try_from(product).unwrap_or(i64::MAX)
}
