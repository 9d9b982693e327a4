//! The state of one side while it is read.

use std::collections::HashSet;

use borehole_model::{
    Context, LabelValue, LabelsId, Measure, Sample, Sampled, StackId, Status, Tables, Weigher,
};

use super::Per;
use super::stretches::SideStretches;
use crate::facts::SummaryCounts;

/// The kind of a side's stretches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StretchAxis {
    Time,
    Samples,
    Inputs,
}

/// The assumed period of times whose source does not state one: most profilers sample a hundred times a second.
const USUAL_PERIOD_NS: f64 = 1e7;

/// The assumed number of observations of a sum that is not a time and states none. Differences below a hundredth of the whole are
/// then noise.
const OBSERVATIONS_OF_A_SUM: f64 = 1e4;

/// A side. Either its samples are counted, or their values: a value of 5 counts like 5 samples.
#[derive(Clone, Debug)]
pub(crate) struct SideState {
    pub(crate) facts: SummaryCounts,
    pub(crate) weigher: Weigher,
    /// The sum of values, including those of empty stacks; `None` if samples are counted.
    pub(crate) values: Option<u64>,
    /// The period of the samples that have values, if known.
    value_period_ns: Option<u64>,
    pub(crate) stretches: SideStretches,
    pub(crate) inputs: u64,
    /// Whether all inputs so far keep samples in order.
    pub(crate) is_ordered: bool,
    /// Detects whether the current input consists of sums.
    sums: SumDetector,
    pub(crate) has_files: bool,
    pub(crate) labels: HashSet<LabelValue>,
    /// By label set: whether its labels have been read.
    known_labels: Vec<bool>,
    period_ns: Option<u64>,
    axis: Option<StretchAxis>,
    position: u64,
    /// The first time of the current input, and its position.
    origin: Option<(i64, u64)>,
}

impl SideState {
    /// `by_input`: each input is a stretch.
    pub(crate) fn new(by_input: bool, value: Option<&str>) -> Self {
        Self {
            facts: SummaryCounts::default(),
            // Count samples, so that those without a period can be compared with those that have one.
            weigher: Weigher::new(value, Sampled::Count),
            values: None,
            value_period_ns: None,
            stretches: SideStretches::new(false),
            inputs: 0,
            is_ordered: true,
            sums: SumDetector::default(),
            has_files: false,
            labels: HashSet::new(),
            known_labels: Vec::new(),
            period_ns: None,
            axis: by_input.then_some(StretchAxis::Inputs),
            position: 0,
            origin: None,
        }
    }

    pub(crate) fn segment(&mut self, at: Context<'_>) {
        self.facts.segment(at);
        self.weigher.segment(at.segment);
        if at.segment.index > 0 {
            return;
        }
        self.inputs += 1;
        self.origin = None;
        self.end_input();
        self.is_ordered &= at.segment.has_times || at.segment.is_ordered;
    }

    #[inline]
    pub(crate) fn sample(&mut self, at: Context<'_>, sample: &Sample<'_>, per: &Per) {
        let Some(weight) = self.weigher.weigh(at, sample) else { return };
        if self.weigher.measure() != Some(Measure::Count) {
            return self.value(at, sample, weight, per);
        }
        if sample.count > 0 {
            self.count(at, sample, sample.count, per);
        }
    }

    /// Counts a value. Negative values count as 0.
    fn value(&mut self, at: Context<'_>, sample: &Sample<'_>, value: i64, per: &Per) {
        let value = u64::try_from(value).unwrap_or(0);
        let sum = self.values.get_or_insert(0);
        *sum = sum.saturating_add(value);
        self.value_period_ns = self.value_period_ns.or(at.segment.period_ns);
        if value > 0 {
            self.count(at, sample, value, per);
        }
    }

    #[inline]
    fn count(&mut self, at: Context<'_>, sample: &Sample<'_>, count: u64, per: &Per) {
        if at.segment.period_ns != self.period_ns {
            self.settle(at.segment.period_ns);
        }
        self.facts.count(at, sample);
        self.sums.take(at, sample);
        self.place(sample, count);
        if let (Per::Label(key), Some(labels)) = (per, sample.labels) {
            self.label(labels, key, at.tables);
        }
    }

    /// Computes the time of the samples so far. The following samples have another period.
    #[cold]
    fn settle(&mut self, next_period_ns: Option<u64>) {
        self.stretches.settle();
        self.stretches.counts.settle(self.period_ns.unwrap_or(0));
        self.facts.settle(self.period_ns);
        self.period_ns = next_period_ns;
    }

    /// Ends an input. If it consists of sums, its order is meaningless: it comes from conversion into a format with an
    /// order.
    fn end_input(&mut self) {
        self.is_ordered &= !std::mem::take(&mut self.sums).are_all();
    }

    /// Counts waiting samples after the last one.
    pub(crate) fn finish(&mut self) {
        self.end_input();
        self.stretches.settle();
        self.stretches.counts.finish(self.period_ns.unwrap_or(0));
        self.facts.settle(self.period_ns);
    }

    /// Whether counted values are times, in nanoseconds.
    pub(crate) fn is_time(&self) -> bool {
        let value_type = self.weigher.value_type();
        self.values.is_some()
            && value_type.is_some_and(|value_type| value_type.nanoseconds_per_unit().is_some())
    }

    /// The number of counted units per observation.
    // Noise does not need more precision than a double has.
    #[expect(clippy::cast_precision_loss)]
    pub(crate) fn observation(&self) -> f64 {
        match self.values {
            None => 1.0,
            Some(_) if self.is_time() => {
                self.value_period_ns.map_or(USUAL_PERIOD_NS, |period_ns| period_ns.max(1) as f64)
            }
            Some(sum) => (sum as f64 / OBSERVATIONS_OF_A_SUM).max(1.0),
        }
    }

    /// Whether stretches are of time.
    pub(crate) fn is_of_time(&self) -> bool {
        self.axis == Some(StretchAxis::Time)
    }

    /// Whether each stretch is an input.
    pub(crate) fn is_of_inputs(&self) -> bool {
        self.axis == Some(StretchAxis::Inputs)
    }

    #[inline]
    fn place(&mut self, sample: &Sample<'_>, count: u64) {
        let axis = match self.axis {
            Some(axis) => axis,
            None => self.begin(sample),
        };
        match axis {
            StretchAxis::Samples => {
                self.stretches.spread(sample.stack, self.position, count);
                self.position = self.position.saturating_add(count);
            }
            StretchAxis::Inputs => {
                self.position = self.inputs.saturating_sub(1);
                self.stretches.add(sample.stack, self.position, count);
            }
            StretchAxis::Time => {
                self.tick(sample);
                self.stretches.add(sample.stack, self.position, count);
            }
        }
    }

    #[cold]
    fn begin(&mut self, sample: &Sample<'_>) -> StretchAxis {
        let axis = if sample.time_ns.is_some() { StretchAxis::Time } else { StretchAxis::Samples };
        self.stretches = SideStretches::new(axis == StretchAxis::Time);
        self.axis = Some(axis);
        axis
    }

    /// Sets the position to the sample's time. Each input has a clock of its own, which begins where the previous input
    /// ended. A clock that goes backwards stays within its input.
    #[inline]
    fn tick(&mut self, sample: &Sample<'_>) {
        let Some(time_ns) = sample.time_ns else { return };
        let end = self.stretches.end;
        let &mut (from_ns, from) = self.origin.get_or_insert((time_ns, end));
        let since = u64::try_from(time_ns.saturating_sub(from_ns)).unwrap_or(0);
        self.position = from.saturating_add(since);
    }

    fn label(&mut self, labels: LabelsId, key: &[u8], tables: &Tables) {
        if labels.index() >= self.known_labels.len() {
            self.known_labels.resize(labels.index() + 1, false);
        }
        if std::mem::replace(&mut self.known_labels[labels.index()], true) {
            return;
        }
        let value = tables.labels(labels).iter().rfind(|label| tables.string(label.key) == key);
        if value.is_some_and(|label| self.labels.insert(label.value)) {
            self.stretches.label(self.position);
        }
    }
}

/// The properties that distinguish sums.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct ObservationKey {
    stack: Option<StackId>,
    process: Option<i64>,
    thread: Option<u64>,
    interpreter: Option<u64>,
    status: Option<Status>,
    labels: Option<LabelsId>,
}

/// Looks for a key that occurs again later, which happens among samples but not among sums.
///
/// Memory: grows with the distinct keys until one recurs, which happens soon in sampled inputs.
#[derive(Clone, Debug, Default)]
struct SumDetector {
    seen: HashSet<ObservationKey>,
    last: Option<ObservationKey>,
    samples: u64,
    came_back: bool,
}

impl SumDetector {
    #[inline]
    fn take(&mut self, at: Context<'_>, sample: &Sample<'_>) {
        if !self.came_back {
            self.look(at, sample);
        }
    }

    fn look(&mut self, at: Context<'_>, sample: &Sample<'_>) {
        let Sample { stack, thread, interpreter, status, labels, .. } = *sample;
        let key = ObservationKey { stack, process: at.process(sample), thread, interpreter, status, labels };
        self.samples = self.samples.saturating_add(sample.count);
        if self.last.replace(key) != Some(key) && !self.seen.insert(key) {
            self.came_back = true;
            self.seen = HashSet::new();
        }
    }

    /// Whether every key occurred in one place only, and some sum counts more than one sample.
    fn are_all(&self) -> bool {
        !self.came_back && self.samples > self.seen.len() as u64
    }
}
