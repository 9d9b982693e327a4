//! The amounts that samples add to views: their count, or a value.

use borehole_model::{Context, Measure, Mode, Sample, Sampled, Segment, ValueType, Weigher};

use crate::view::ProfileSummary;

/// The amount that a sample adds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AddedAmount {
    /// Its count, and the time of its count times its period.
    Samples,
    /// A value, regardless of its count.
    Value(i64),
}

/// Decides which samples add to a view, and how much.
///
/// In profiles with values, the weigher is asked for each sample. In profiles without, it is asked once per segment; each
/// further sample then costs one comparison.
#[derive(Clone, Debug)]
pub(crate) struct Weighing {
    pub(crate) weigher: Weigher,
    path: WeighingMode,
    mode: Option<Mode>,
    has_values: bool,
    is_uncounted: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WeighingMode {
    /// No segment has begun.
    Unknown,
    /// The weigher is asked for each sample.
    Asked,
    /// Samples are counted.
    Sampled,
}

impl Default for Weighing {
    /// Counts the samples of sampled profiles, with or without a period. Their time is computed separately.
    fn default() -> Self {
        Self::new(Weigher::new(None, Sampled::Count))
    }
}

impl Weighing {
    pub(crate) const fn new(weigher: Weigher) -> Self {
        Self { weigher, path: WeighingMode::Unknown, mode: None, has_values: false, is_uncounted: false }
    }

    pub(crate) fn segment(&mut self, segment: &Segment) {
        self.weigher.segment(segment);
        self.path = WeighingMode::Asked;
    }

    /// The amount that a sample adds; `None` if it adds nothing or its value type is hidden.
    #[inline]
    pub(crate) fn weigh(&mut self, at: Context<'_>, sample: &Sample<'_>) -> Option<AddedAmount> {
        if self.path == WeighingMode::Sampled {
            return (sample.count > 0).then_some(AddedAmount::Samples);
        }
        self.ask(at, sample)
    }

    fn ask(&mut self, at: Context<'_>, sample: &Sample<'_>) -> Option<AddedAmount> {
        if self.path == WeighingMode::Unknown {
            self.segment(at.segment);
        }
        let value = self.weigher.weigh(at, sample)?;
        self.mode.get_or_insert(at.segment.mode);
        if let Measure::Value(_) = self.weigher.measure()? {
            self.has_values = true;
            self.is_uncounted |= at.segment.is_uncounted;
            return (value != 0 || sample.count > 0).then_some(AddedAmount::Value(value));
        }
        self.path = WeighingMode::Sampled;
        (sample.count > 0).then_some(AddedAmount::Samples)
    }

    /// Fills in the value types and hidden samples of a summary whose periods are known.
    pub(crate) fn describe(&self, summary: &mut ProfileSummary) {
        let weigher = &self.weigher;
        summary.mode = self.mode.unwrap_or_default();
        summary.is_uncounted = self.is_uncounted;
        let weighed = weigher.value_type();
        summary.is_valued = self.has_values || weighed.is_some_and(|weighed| !weighed.is_samples());
        let time = ValueType::time(summary.mode);
        summary.value_type = match weighed {
            Some(weighed) if summary.is_valued => weighed.clone(),
            _ if summary.has_all_periods() && weigher.asked().is_none() => time.clone(),
            _ => ValueType::samples(),
        };
        let is_known = |kind: &ValueType| {
            let kind = kind.shown().0;
            let is_of_samples = !summary.is_valued && (kind.is_samples() || kind == time);
            is_of_samples || kind == summary.value_type
        };
        let others = weigher.kinds().iter().filter(|kind| !is_known(kind)).cloned().collect();
        summary.other_value_types = others;
        summary.hidden = weigher.hidden().map(|(kind, samples)| (kind.clone(), samples)).collect();
        summary.hidden_samples = weigher.hidden_samples();
    }
}
