//! The last samples, kept as runs: a run of 2⁴⁰ equal samples takes one place.

use std::collections::VecDeque;

use borehole_model::{Context, LabelValue, LabelsId, Sample, StackId, Tables};

use crate::call_tree::CallTree;
use crate::view::{LabelText, RecentRun};

#[derive(Clone, Copy, Debug)]
struct SampleRun {
    stack: StackId,
    count: u64,
    process: Option<i64>,
    thread: Option<u64>,
    time_ns: Option<i64>,
    labels: Option<LabelsId>,
}

/// The runs that hold the last `wanted` samples.
#[derive(Clone, Debug)]
pub(crate) struct RecentSamples {
    wanted: u64,
    held: u64,
    runs: VecDeque<SampleRun>,
}

impl RecentSamples {
    pub(crate) const fn new(wanted: u64) -> Self {
        Self { wanted, held: 0, runs: VecDeque::new() }
    }

    pub(crate) fn push(&mut self, at: Context<'_>, stack: StackId, sample: &Sample<'_>) {
        let run = SampleRun {
            stack,
            count: sample.count.min(self.wanted),
            process: at.process(sample),
            thread: sample.thread,
            time_ns: sample.time_ns,
            labels: sample.labels,
        };
        self.shrink_to(self.wanted - run.count);
        self.held += run.count;
        self.runs.push_back(run);
    }

    /// Drops the oldest samples until at most `most` are held.
    fn shrink_to(&mut self, most: u64) {
        while let Some(oldest) = self.runs.front_mut()
            && self.held > most
        {
            let surplus = oldest.count.min(self.held - most);
            oldest.count -= surplus;
            self.held -= surplus;
            if oldest.count == 0 {
                self.runs.pop_front();
            }
        }
    }

    /// The runs, oldest first, with at most `depth` frames each.
    pub(crate) fn view(&self, tree: &CallTree, tables: &Tables, depth: Option<usize>) -> Vec<RecentRun> {
        let mut age = self.held;
        let views = self.runs.iter().map(|run| {
            age -= run.count;
            let shown =
                std::iter::successors(tree.leaf(run.stack), |&stack| tree.leaf(tables.parent(stack)?));
            let names = shown.map(|stack| tree.groups.name(tree.group(stack, tables)));
            RecentRun {
                count: run.count,
                age,
                depth: names.clone().count(),
                frames_leaf_first: names.take(depth.unwrap_or(usize::MAX)).cloned().collect(),
                labels: run.labels.map(|labels| label_texts(labels, tables)).unwrap_or_default(),
                process: run.process,
                thread: run.thread,
                time_ns: run.time_ns,
            }
        });
        views.collect()
    }
}

fn label_texts(labels: LabelsId, tables: &Tables) -> Vec<(Vec<u8>, LabelText)> {
    let labels = tables.labels(labels).iter();
    labels.map(|label| (tables.string(label.key).to_vec(), label_text(label.value, tables))).collect()
}

pub(crate) fn label_text(value: LabelValue, tables: &Tables) -> LabelText {
    let string = |id| tables.string(id).to_vec();
    match value {
        LabelValue::Text(text) => LabelText::Text(string(text)),
        LabelValue::Number { value, unit } => LabelText::Number(value, unit.map(string)),
    }
}
