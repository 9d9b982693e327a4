//! Delivers the samples, after the last event.

use std::ops::ControlFlow;

use borehole_model::dial9::label;
use borehole_model::{
    Context, Label, LabelValue, LabelsId, ProfileSink, Sample, Segment, StackId, TableFull, Tables, ValueType,
};
use hashbrown::HashMap;

use super::activities::Activities;
use super::facts::TraceFacts;
use super::held::HeldSample;
use crate::NAME;
use crate::{ReadError, SampleKind};

/// A set of labels with its additions: the worker and the task.
type Labelling = (Option<LabelsId>, Option<u64>, Option<u64>);

/// The samples that are being delivered.
pub(super) struct SampleDelivery<'a> {
    pub(super) wanted: SampleKind,
    /// Whether all of them are labelled with their input.
    pub(super) has_input: bool,
    pub(super) facts: &'a TraceFacts,
    pub(super) tables: &'a mut Tables,
    pub(super) sink: &'a mut dyn ProfileSink,
    /// By the rows in the samples.
    pub(super) stacks: Vec<Option<StackId>>,
    /// By the rows in the samples.
    pub(super) base_labels: Vec<LabelsId>,
    /// The sets of labels created from them.
    pub(super) labels: HashMap<Labelling, Option<LabelsId>>,
}

impl SampleDelivery<'_> {
    pub(super) fn begin(&mut self, index: usize) -> Result<Segment, ReadError> {
        let origin = self.facts.origins.get(index).cloned().unwrap_or_default();
        let segment = Segment {
            format: NAME,
            index: index as u64,
            period_ns: origin.period_ns,
            has_times: true,
            start_unix_ns: self.facts.start_unix_ns,
            process: origin.process,
            metadata: origin.metadata,
            value_types: value_types(self.wanted),
            ..Segment::default()
        };
        let at = Context { tables: self.tables, segment: &segment };
        self.sink.segment(at)?;
        if index == 0 {
            for (thread, name) in self.facts.named_threads() {
                self.sink.thread(at, thread, name)?;
            }
        }
        Ok(segment)
    }

    pub(super) fn sample(
        &mut self,
        segment: &Segment,
        held: &HeldSample,
    ) -> Result<ControlFlow<()>, ReadError> {
        let (worker, task) = if held.is_derived { self.place(held) } else { (None, None) };
        let base = held.labels.and_then(|row| self.base_labels.get(row as usize).copied());
        let values = [held.count, held.bytes].map(|value| i64::try_from(value).unwrap_or(i64::MAX));
        let sample = Sample {
            stack: held.stack.and_then(|row| self.stacks.get(row as usize).copied().flatten()),
            count: held.count,
            time_ns: held.time_ns.and_then(|time_ns| i64::try_from(time_ns).ok()),
            process: held.process,
            thread: held.thread,
            labels: self.labels(base, worker, task)?,
            values: if segment.value_types.is_empty() { &[] } else { &values },
            ..Sample::default()
        };
        Ok(self.sink.sample(Context { tables: self.tables, segment }, &sample)?)
    }

    /// The worker and the task of a sample.
    fn place(&self, held: &HeldSample) -> (Option<u64>, Option<u64>) {
        let TraceFacts { workers, polls, .. } = self.facts;
        let during = |spans: &Activities, lane: Option<u64>| spans.at(lane?, held.time_ns?);
        let worker = held.worker.or_else(|| during(workers, held.thread));
        (worker, held.task.or_else(|| during(polls, worker)))
    }

    fn labels(
        &mut self,
        base: Option<LabelsId>,
        worker: Option<u64>,
        task: Option<u64>,
    ) -> Result<Option<LabelsId>, TableFull> {
        if let Some(&labels) = self.labels.get(&(base, worker, task)) {
            return Ok(labels);
        }
        let mut set = base.map(|base| self.tables.labels(base).to_vec()).unwrap_or_default();
        for (key, number) in [(label::WORKER, worker), (label::TASK, task)] {
            if let Some(value) = number.and_then(|number| i64::try_from(number).ok()) {
                let key = self.tables.intern_string(key.as_bytes())?;
                set.push(Label { key, value: LabelValue::Number { value, unit: None } });
            }
        }
        let has_labels = self.has_input || base.is_some() || !set.is_empty();
        let labels = if has_labels { Some(self.tables.intern_labels(&set)?) } else { None };
        self.labels.insert((base, worker, task), labels);
        Ok(labels)
    }
}

fn value_types(wanted: SampleKind) -> Vec<ValueType> {
    let value_type = |kind: &str, unit: &str| ValueType { kind: kind.to_owned(), unit: unit.to_owned() };
    match wanted {
        SampleKind::Allocation => {
            vec![value_type("alloc_objects", "count"), value_type("alloc_space", "bytes")]
        }
        _ => Vec::new(),
    }
}
