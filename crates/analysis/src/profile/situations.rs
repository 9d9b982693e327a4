//! Everything about samples except their stack; each distinct combination is stored once.

use borehole_model::{LabelValue, LabelsId, Status, StringId, Tables};
use hashbrown::HashMap;

use crate::selection::SampleSelection;

/// The number of a situation: dense, in order of first appearance.
pub(crate) type SituationId = u32;

/// The circumstances in which samples were taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Situation {
    /// The source, if several are kept apart.
    pub(crate) source: u32,
    pub(crate) process: Option<i64>,
    pub(crate) thread: Option<u64>,
    pub(crate) interpreter: Option<u64>,
    pub(crate) status: Option<Status>,
    pub(crate) labels: Option<LabelsId>,
    /// The metadata of the profile: see [`Situations::metadata`].
    pub(crate) metadata: u32,
    /// The time that each sample stands for.
    pub(crate) period_ns: Option<u64>,
    /// Whether sums are of values, not counts of samples.
    pub(crate) is_valued: bool,
}

/// The observed values of a metadata key.
struct MetadataValues {
    value: StringId,
    /// Whether there are different values.
    is_other: bool,
    times: usize,
}

/// The distinct situations.
#[derive(Clone, Debug, Default)]
pub(crate) struct Situations {
    rows: Vec<Situation>,
    index: HashMap<Situation, SituationId>,
    /// The last situation looked up, because consecutive samples usually share theirs.
    last: Option<(Situation, SituationId)>,
    /// The distinct metadata of profiles.
    metadata: Vec<Vec<(StringId, StringId)>>,
    metadata_index: HashMap<Vec<(StringId, StringId)>, u32>,
}

impl Situations {
    /// The number of a situation. All beyond 2^32 share the last number.
    #[inline]
    pub(crate) fn intern(&mut self, situation: Situation) -> SituationId {
        match self.last {
            Some((last, id)) if last == situation => id,
            _ => self.look_up(situation),
        }
    }

    fn look_up(&mut self, situation: Situation) -> SituationId {
        let Self { rows, index, .. } = self;
        let id = *index.entry(situation).or_insert_with(|| {
            let Ok(id) = SituationId::try_from(rows.len()) else { return SituationId::MAX };
            rows.push(situation);
            id
        });
        self.last = Some((situation, id));
        id
    }

    /// The number of a profile's metadata. All beyond 2^32 share the last number.
    pub(crate) fn metadata(&mut self, metadata: &[(StringId, StringId)]) -> u32 {
        if let Some(&known) = self.metadata_index.get(metadata) {
            return known;
        }
        let Ok(number) = u32::try_from(self.metadata.len()) else { return u32::MAX };
        self.metadata.push(metadata.to_vec());
        self.metadata_index.insert(metadata.to_vec(), number);
        number
    }

    /// The last value of a situation's label, or else the value in its profile's metadata.
    pub(crate) fn label(&self, situation: &Situation, key: &[u8], tables: &Tables) -> Option<LabelValue> {
        let labels = situation.labels.map(|labels| tables.labels(labels)).unwrap_or_default();
        let label = labels.iter().rfind(|label| tables.string(label.key) == key).map(|label| label.value);
        let of_profile = || {
            let metadata = self.metadata.get(situation.metadata as usize)?;
            let found = metadata.iter().rfind(|&&(known, _)| tables.string(known) == key)?;
            Some(LabelValue::Text(found.1))
        };
        label.or_else(of_profile)
    }

    /// The metadata keys that differ between profiles, in order of first appearance.
    pub(crate) fn telling_keys(&self) -> Vec<StringId> {
        let mut keys: Vec<StringId> = Vec::new();
        let mut seen: HashMap<StringId, MetadataValues> = HashMap::new();
        for metadata in &self.metadata {
            for &(key, value) in metadata {
                let seen = seen.entry(key).or_insert_with(|| {
                    keys.push(key);
                    MetadataValues { value, is_other: false, times: 0 }
                });
                seen.times += 1;
                seen.is_other |= seen.value != value;
            }
        }
        keys.retain(|key| seen[key].is_other || seen[key].times < self.metadata.len());
        keys
    }

    /// Whether a selection accepts the samples of a situation, ignoring time.
    pub(crate) fn are_selected(
        &self,
        situation: &Situation,
        selection: &SampleSelection,
        tables: &Tables,
    ) -> bool {
        accepts(&selection.threads, situation.thread)
            && accepts(&selection.processes, situation.process)
            && accepts(&selection.interpreters, situation.interpreter)
            && accepts_status(selection.status, situation.status)
            && selection.labels.iter().all(|(key, value)| {
                self.label(situation, key, tables).is_some_and(|found| is_text(found, value, tables))
            })
    }

    pub(crate) fn get(&self, id: SituationId) -> &Situation {
        &self.rows[id as usize]
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Situation> {
        self.rows.iter()
    }
}

fn accepts<T: PartialEq>(selected: &[T], found: Option<T>) -> bool {
    selected.is_empty() || found.is_some_and(|found| selected.contains(&found))
}

fn accepts_status(Status(selected): Status, found: Option<Status>) -> bool {
    selected == 0 || found.is_some_and(|Status(bits)| bits & selected == selected)
}

fn is_text(found: LabelValue, text: &[u8], tables: &Tables) -> bool {
    match found {
        LabelValue::Text(found) => tables.string(found) == text,
        LabelValue::Number { value, .. } => value.to_string().as_bytes() == text,
    }
}
