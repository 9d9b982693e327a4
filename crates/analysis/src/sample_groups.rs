//! Samples by label, process, thread or interpreter.

use std::collections::HashMap;

use borehole_model::{Context, LabelValue, LabelsId, Sample, StringId, Tables, Thread, ThreadNames};

use crate::counts::Tally;
use crate::groups::GroupId;
use crate::query::By;
use crate::ranking::{Basis, Ranking};
use crate::recent::label_text;
use crate::view::GroupValue;

/// What a group has in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Key {
    Absent,
    Label(LabelValue),
    Process(i64),
    Thread(Thread),
    Interpreter(u64),
}

/// Adds up samples by label, process, thread or interpreter.
#[derive(Clone, Debug)]
pub(crate) struct SampleGroups {
    by: By,
    keys: Vec<Key>,
    index: HashMap<Key, GroupId>,
    /// The value in each label set: a set is searched once.
    of_labels: Vec<Option<Option<LabelValue>>>,
    /// The metadata of the last segment that was searched, and what was found.
    of_metadata: (Vec<(StringId, StringId)>, Option<LabelValue>),
    /// The group of the last sample: samples of one process follow each other.
    last: Option<GroupId>,
    names: ThreadNames,
    ranking: Ranking,
}

impl SampleGroups {
    /// `None` where `by` is about frames.
    pub(crate) fn new(by: &By) -> Option<Self> {
        let about_samples = matches!(by, By::Label(_) | By::Process | By::Thread | By::Interpreter);
        about_samples.then(|| Self {
            by: by.clone(),
            keys: Vec::new(),
            index: HashMap::new(),
            of_labels: Vec::new(),
            of_metadata: (Vec::new(), None),
            last: None,
            names: ThreadNames::default(),
            ranking: Ranking::default(),
        })
    }

    pub(crate) fn add(&mut self, at: Context<'_>, sample: &Sample<'_>, tally: Tally) {
        let lane = at.lane(sample);
        let key = match &self.by {
            By::Label(_) => self.label(at, sample).map(Key::Label),
            By::Process => lane.process.map(Key::Process),
            By::Thread => lane.thread().map(Key::Thread),
            By::Interpreter => lane.interpreter.map(Key::Interpreter),
            By::File | By::Class => None,
        };
        let group = self.of_key(key.unwrap_or(Key::Absent));
        self.ranking.add(group, tally);
    }

    pub(crate) fn name_thread(&mut self, thread: Thread, name: StringId) {
        self.names.name(thread, name);
    }

    /// What a sample's label says, or else the metadata of its segment.
    fn label(&mut self, at: Context<'_>, sample: &Sample<'_>) -> Option<LabelValue> {
        let found = sample.labels.and_then(|labels| self.in_labels(labels, at.tables));
        found.or_else(|| self.in_metadata(at))
    }

    fn in_metadata(&mut self, at: Context<'_>) -> Option<LabelValue> {
        let (searched, found) = &mut self.of_metadata;
        if *searched != at.segment.metadata
            && let By::Label(wanted) = &self.by
        {
            searched.clone_from(&at.segment.metadata);
            let value = searched.iter().rfind(|&&(key, _)| at.tables.string(key) == wanted);
            *found = value.map(|&(_, value)| LabelValue::Text(value));
        }
        *found
    }

    fn in_labels(&mut self, labels: LabelsId, tables: &Tables) -> Option<LabelValue> {
        let row = labels.index();
        if let Some(&Some(found)) = self.of_labels.get(row) {
            return found;
        }
        let found = match &self.by {
            By::Label(key) => tables.labels(labels).iter().rfind(|label| tables.string(label.key) == key),
            _ => None,
        };
        let found = found.map(|label| label.value);
        if row >= self.of_labels.len() {
            self.of_labels.resize(row + 1, None);
        }
        self.of_labels[row] = Some(found);
        found
    }

    fn of_key(&mut self, key: Key) -> GroupId {
        if let Some(last) = self.last.filter(|&last| self.keys[last] == key) {
            return last;
        }
        let group = *self.index.entry(key).or_insert_with(|| {
            self.keys.push(key);
            self.keys.len() - 1
        });
        self.last = Some(group);
        group
    }

    /// All groups in the order of a table.
    pub(crate) fn sorted(&self, basis: Basis) -> Vec<(GroupId, Tally)> {
        self.ranking.clone().sorted(basis)
    }

    pub(crate) fn value(&self, group: GroupId, tables: &Tables) -> GroupValue {
        match self.keys[group] {
            Key::Absent => GroupValue::Absent,
            Key::Label(value) => GroupValue::Label(label_text(value, tables)),
            Key::Process(process) => GroupValue::Process(process),
            Key::Interpreter(interpreter) => GroupValue::Interpreter(interpreter),
            Key::Thread(thread) => {
                let name = self.names.of(thread).map(|&name| tables.string(name).to_vec());
                GroupValue::Thread { process: thread.process, thread: thread.number, name }
            }
        }
    }
}
