//! Samples by label, process or thread.

use std::collections::HashMap;

use borehole_model::{Context, LabelValue, LabelsId, Sample, StringId, Tables, Thread, ThreadNames};

use crate::counts::Tally;
use crate::groups::GroupId;
use crate::query::By;
use crate::ranking::Ranking;
use crate::recent::label_text;
use crate::view::GroupValue;

/// What a group has in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Key {
    Absent,
    Label(LabelValue),
    Process(i64),
    Thread(Thread),
}

/// Adds up samples by label, process or thread.
#[derive(Clone, Debug)]
pub(crate) struct SampleGroups {
    by: By,
    keys: Vec<Key>,
    index: HashMap<Key, GroupId>,
    /// The group of each label set: a set is searched once.
    of_labels: Vec<Option<GroupId>>,
    /// The group of the last sample: samples of one process follow each other.
    last: Option<GroupId>,
    names: ThreadNames,
    ranking: Ranking,
}

impl SampleGroups {
    /// `None` where `by` is about frames.
    pub(crate) fn new(by: &By) -> Option<Self> {
        let about_samples = matches!(by, By::Label(_) | By::Process | By::Thread);
        about_samples.then(|| Self {
            by: by.clone(),
            keys: Vec::new(),
            index: HashMap::new(),
            of_labels: Vec::new(),
            last: None,
            names: ThreadNames::default(),
            ranking: Ranking::default(),
        })
    }

    pub(crate) fn add(&mut self, at: Context<'_>, sample: &Sample<'_>, tally: Tally) {
        let group = match (&self.by, sample.labels) {
            (By::Label(_), Some(labels)) => self.of_labels(labels, at.tables),
            (By::Process, _) => self.of_key(at.process(sample).map_or(Key::Absent, Key::Process)),
            (By::Thread, _) => self.of_key(at.thread(sample).map_or(Key::Absent, Key::Thread)),
            _ => self.of_key(Key::Absent),
        };
        self.ranking.add(group, tally);
    }

    pub(crate) fn name_thread(&mut self, thread: Thread, name: StringId) {
        self.names.name(thread, name);
    }

    fn of_labels(&mut self, labels: LabelsId, tables: &Tables) -> GroupId {
        let row = labels.index();
        if let Some(&Some(group)) = self.of_labels.get(row) {
            return group;
        }
        let found = match &self.by {
            By::Label(key) => tables.labels(labels).iter().rfind(|label| tables.string(label.key) == key),
            _ => None,
        };
        let group = self.of_key(found.map_or(Key::Absent, |label| Key::Label(label.value)));
        if row >= self.of_labels.len() {
            self.of_labels.resize(row + 1, None);
        }
        self.of_labels[row] = Some(group);
        group
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
    pub(crate) fn sorted(&self) -> Vec<(GroupId, Tally)> {
        self.ranking.clone().sorted()
    }

    pub(crate) fn value(&self, group: GroupId, tables: &Tables) -> GroupValue {
        match self.keys[group] {
            Key::Absent => GroupValue::Absent,
            Key::Label(value) => GroupValue::Label(label_text(value, tables)),
            Key::Process(process) => GroupValue::Process(process),
            Key::Thread(thread) => {
                let name = self.names.of(thread).map(|&name| tables.string(name).to_vec());
                GroupValue::Thread { process: thread.process, thread: thread.number, name }
            }
        }
    }
}
