//! What is kept of one side while it is read.

use std::collections::HashSet;

use borehole_model::{Context, LabelValue, LabelsId, Sample, Tables, Warning};

use super::Per;
use super::blocks::Blocks;
use super::sums::Sums;
use crate::facts::Facts;

/// What stretches are stretches of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Axis {
    Time,
    Samples,
    Inputs,
}

/// A side.
#[derive(Clone, Debug)]
pub(crate) struct Side {
    pub(crate) facts: Facts,
    pub(crate) blocks: Blocks,
    pub(crate) inputs: u64,
    /// Whether all inputs so far tell of an order.
    pub(crate) is_ordered: bool,
    /// Of the input that is being read.
    sums: Sums,
    pub(crate) has_files: bool,
    pub(crate) labels: HashSet<LabelValue>,
    /// Whether the labels of a set were looked at.
    known_labels: Vec<bool>,
    period_ns: Option<u64>,
    axis: Option<Axis>,
    position: u64,
    /// Where the time of the input that is being read begins, and its position.
    origin: Option<(i64, u64)>,
}

impl Side {
    /// `by_input`: stretches are inputs.
    pub(crate) fn new(by_input: bool) -> Self {
        Self {
            facts: Facts::default(),
            blocks: Blocks::new(false),
            inputs: 0,
            is_ordered: true,
            sums: Sums::default(),
            has_files: false,
            labels: HashSet::new(),
            known_labels: Vec::new(),
            period_ns: None,
            axis: by_input.then_some(Axis::Inputs),
            position: 0,
            origin: None,
        }
    }

    pub(crate) fn segment(&mut self, at: Context<'_>) {
        self.facts.segment(at);
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
        if at.segment.period_ns != self.period_ns {
            self.settle(at.segment.period_ns);
        }
        self.facts.count(at, sample);
        self.sums.take(at, sample);
        self.place(sample);
        if let (Per::Label(key), Some(labels)) = (per, sample.labels) {
            self.label(labels, key, at.tables);
        }
    }

    /// Works out the time of the samples so far; the next ones are of another period.
    #[cold]
    fn settle(&mut self, next_period_ns: Option<u64>) {
        self.blocks.settle();
        self.blocks.counts.settle(self.period_ns.unwrap_or(0));
        self.facts.settle(self.period_ns);
        self.period_ns = next_period_ns;
    }

    /// An order that a profile of sums was given, when it was converted into a format that has one, is none.
    fn end_input(&mut self) {
        self.is_ordered &= !std::mem::take(&mut self.sums).are_all();
    }

    /// Counts what waits: there are no more samples.
    pub(crate) fn finish(&mut self) {
        self.end_input();
        self.blocks.settle();
        self.blocks.counts.finish(self.period_ns.unwrap_or(0));
        self.facts.settle(self.period_ns);
    }

    /// Whether stretches are stretches of time.
    pub(crate) fn is_of_time(&self) -> bool {
        self.axis == Some(Axis::Time)
    }

    /// Whether stretches are inputs.
    pub(crate) fn is_of_inputs(&self) -> bool {
        self.axis == Some(Axis::Inputs)
    }

    pub(crate) fn warning(&mut self, warning: &Warning) {
        self.facts.warning(warning);
    }

    #[inline]
    fn place(&mut self, sample: &Sample<'_>) {
        let axis = match self.axis {
            Some(axis) => axis,
            None => self.begin(sample),
        };
        match axis {
            Axis::Samples => {
                self.blocks.spread(sample.stack, self.position, sample.count);
                self.position = self.position.saturating_add(sample.count);
            }
            Axis::Inputs => {
                self.position = self.inputs.saturating_sub(1);
                self.blocks.add(sample.stack, self.position, sample.count);
            }
            Axis::Time => {
                self.tick(sample);
                self.blocks.add(sample.stack, self.position, sample.count);
            }
        }
    }

    #[cold]
    fn begin(&mut self, sample: &Sample<'_>) -> Axis {
        let axis = if sample.time_ns.is_some() { Axis::Time } else { Axis::Samples };
        self.blocks = Blocks::new(axis == Axis::Time);
        self.axis = Some(axis);
        axis
    }

    /// Inputs have clocks of their own: each begins where the one before it ended. A clock that goes back stays within
    /// its input.
    #[inline]
    fn tick(&mut self, sample: &Sample<'_>) {
        let Some(time_ns) = sample.time_ns else { return };
        let end = self.blocks.end();
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
            self.blocks.label(self.position);
        }
    }
}
