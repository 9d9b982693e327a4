//! Samples by label, process, thread or interpreter.

use std::collections::HashMap;

use borehole_model::{Column, Context, LabelValue, LabelsId, Sample, StringId, Tables, Thread, ThreadNames};

use crate::counts::Tally;
use crate::groups::GroupId;
use crate::query::By;
use crate::ranking::Ranking;
use crate::recent::label_text;
use crate::view::GroupValue;

/// The common property of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum GroupKey {
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
    keys: Vec<GroupKey>,
    index: HashMap<GroupKey, GroupId>,
    /// By label set: the value in it, once it has been searched.
    of_labels: Column<Option<LabelValue>>,
    /// The metadata of the last segment searched, and the value in it.
    of_metadata: (Vec<(StringId, StringId)>, Option<LabelValue>),
    /// The group of the last sample, because consecutive samples are usually of one process.
    last: Option<GroupId>,
    pub(crate) names: ThreadNames,
    pub(crate) ranking: Ranking,
}

impl SampleGroups {
    /// `None` if `by` is a property of frames.
    pub(crate) fn new(by: &By) -> Option<Self> {
        let about_samples = matches!(by, By::Label(_) | By::Process | By::Thread | By::Interpreter);
        about_samples.then(|| Self {
            by: by.clone(),
            keys: Vec::new(),
            index: HashMap::new(),
            of_labels: Column::default(),
            of_metadata: (Vec::new(), None),
            last: None,
            names: ThreadNames::default(),
            ranking: Ranking::default(),
        })
    }

    pub(crate) fn add(&mut self, at: Context<'_>, sample: &Sample<'_>, tally: Tally) {
        let lane = at.lane(sample);
        let key = match &self.by {
            By::Label(_) => self.label(at, sample).map(GroupKey::Label),
            By::Process => lane.process.map(GroupKey::Process),
            By::Thread => lane.thread().map(GroupKey::Thread),
            By::Interpreter => lane.interpreter.map(GroupKey::Interpreter),
            By::File | By::Class => None,
        };
        let group = self.of_key(key.unwrap_or(GroupKey::Absent));
        self.ranking.add(group, tally);
    }

    /// The value of a sample's label, or else the value in the metadata of its segment.
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
        if let Some(found) = self.of_labels.get(labels.index()) {
            return found;
        }
        let found = match &self.by {
            By::Label(key) => tables.labels(labels).iter().rfind(|label| tables.string(label.key) == key),
            _ => None,
        };
        self.of_labels.set(labels.index(), found.map(|label| label.value))
    }

    fn of_key(&mut self, key: GroupKey) -> GroupId {
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

    pub(crate) fn value(&self, group: GroupId, tables: &Tables) -> GroupValue {
        match self.keys[group] {
            GroupKey::Absent => GroupValue::Absent,
            GroupKey::Label(value) => GroupValue::Label(label_text(value, tables)),
            GroupKey::Process(process) => GroupValue::Process(process),
            GroupKey::Interpreter(interpreter) => GroupValue::Interpreter(interpreter),
            GroupKey::Thread(thread) => {
                let name = self.names.of(thread).map(|&name| tables.string(name).to_vec());
                GroupValue::Thread { process: thread.process, thread: thread.number, name }
            }
        }
    }
}
