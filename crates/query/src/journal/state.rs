//! The state of a lake after its commits.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::record::{Commit, DataFile, Operation, supported};
use super::sums::{SumSet, parsed};
use crate::tables::{LakeTable, SCHEMA_VERSION};

/// The time for which removed files are remembered: two hours, twice the time of readers. Forgotten ones that are still there
/// are deleted like the remains of writers, once they are old.
const REMEMBERED_US: i64 = 7_200_000_000;

/// The files of a lake after a commit.
#[derive(Clone, Debug, Default)]
pub(crate) struct LakeState {
    pub(crate) version: u64,
    /// The files by path, in a fixed order.
    pub(crate) files: BTreeMap<String, DataFile>,
    /// The checksums of all inputs.
    pub(crate) inputs: SumSet,
    /// The checksums of their beginnings.
    pub(crate) beginnings: SumSet,
    /// Removed files: their paths and when they were removed. Readers of earlier states may still use them.
    pub(crate) removed: BTreeMap<String, i64>,
    pub(crate) changed_us: i64,
    /// The number of the last commit that may have removed stacks.
    pub(crate) dropped: u64,
}

/// Whether commits of this kind leave all stacks in the lake.
const fn keeps_stacks(operation: Operation) -> bool {
    !matches!(operation, Operation::Retain | Operation::Remove | Operation::Relabel)
}

/// A state as it is stored.
#[derive(Serialize, Deserialize)]
struct StoredState {
    schema: u32,
    version: u64,
    changed_us: i64,
    files: Vec<DataFile>,
    #[serde(default)]
    inputs: SumSet,
    #[serde(default)]
    beginnings: SumSet,
    /// The inputs in states of earlier builds.
    #[serde(default, skip_serializing)]
    sources: BTreeSet<String>,
    removed: BTreeMap<String, i64>,
    #[serde(default)]
    dropped: u64,
}

impl LakeState {
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, String> {
        let stored: StoredState = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        supported(stored.schema)?;
        let mut inputs = stored.inputs;
        inputs.extend(stored.sources.iter().filter_map(|sum| parsed(sum)));
        Ok(Self {
            version: stored.version,
            files: stored.files.into_iter().map(|file| (file.path.clone(), file)).collect(),
            inputs,
            beginnings: stored.beginnings,
            removed: stored.removed,
            changed_us: stored.changed_us,
            dropped: stored.dropped,
        })
    }

    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let stored = StoredState {
            schema: SCHEMA_VERSION,
            version: self.version,
            changed_us: self.changed_us,
            files: self.files.values().cloned().collect(),
            inputs: self.inputs.clone(),
            beginnings: self.beginnings.clone(),
            sources: BTreeSet::new(),
            removed: self.removed.clone(),
            dropped: self.dropped,
        };
        serde_json::to_vec(&stored).expect("strings and numbers are JSON")
    }

    pub(super) fn apply(&mut self, commit: Commit, version: u64) {
        self.version = version;
        self.changed_us = commit.at_us;
        if !keeps_stacks(commit.operation) {
            self.dropped = version;
        }
        // Times that are ahead come from a clock that was wrong.
        let remembered =
            commit.at_us.saturating_sub(REMEMBERED_US)..commit.at_us.saturating_add(REMEMBERED_US);
        self.removed.retain(|_, at_us| remembered.contains(at_us));
        for path in commit.remove {
            self.files.remove(&path);
            self.removed.insert(path, commit.at_us);
        }
        for file in commit.add {
            self.files.insert(file.path.clone(), file);
        }
        let sums = |texts: &[String]| texts.iter().filter_map(|sum| parsed(sum)).collect::<Vec<_>>();
        sums(&commit.forgotten).into_iter().for_each(|sum| self.inputs.remove(sum));
        sums(&commit.forgotten_beginnings).into_iter().for_each(|sum| self.beginnings.remove(sum));
        self.inputs.extend(sums(&commit.sources));
        self.beginnings.extend(sums(&commit.beginnings));
    }

    /// The checksums that it holds itself, and that runs could have.
    pub(super) fn held(&self) -> usize {
        self.inputs.held() + self.beginnings.held()
    }

    /// The files of stacks, those with more names first.
    pub(crate) fn files_of_stacks(&self) -> Vec<DataFile> {
        let mut files: Vec<_> = self.files_of(LakeTable::Stacks).cloned().collect();
        files.sort_by_key(|file| !file.named);
        files
    }

    /// The files of a table.
    pub(crate) fn files_of(&self, table: LakeTable) -> impl Iterator<Item = &DataFile> {
        self.files.values().filter(move |file| file.table == table.name())
    }

    /// Whether it has files of earlier builds, which must be upgraded before they are used.
    pub(crate) fn is_outdated(&self) -> bool {
        self.files.values().any(|file| !file.is_current())
    }

    /// Whether a stack may be in several files.
    pub(crate) fn repeats_stacks(&self) -> bool {
        self.files_of(LakeTable::Stacks).any(|file| file.repeats)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commit(at_us: i64, add: &[&str], remove: &[&str]) -> Commit {
        let mut commit = Commit::new(Operation::Add, at_us);
        let file = |path: &&str| DataFile { path: (*path).to_owned(), ..DataFile::default() };
        commit.add = add.iter().map(file).collect();
        commit.remove = remove.iter().map(|&path| path.to_owned()).collect();
        commit
    }

    #[test]
    fn a_clock_that_steps_changes_no_files_and_deletes_none_early() {
        const NOW_US: i64 = 1_793_534_400_000_000;
        const WEEK_US: i64 = 604_800_000_000;
        let mut state = LakeState::default();
        let steps = [0, WEEK_US, -WEEK_US, 60_000_000];
        for (version, (step_us, path)) in (1..).zip(steps.into_iter().zip(["a", "b", "c", "d"])) {
            state.apply(commit(NOW_US + step_us, &[path], &[]), version);
        }
        assert_eq!(
            state.files.keys().collect::<Vec<_>>(),
            ["a", "b", "c", "d"],
            "the order is that of commits"
        );
        state.apply(commit(NOW_US + WEEK_US, &[], &["a"]), 5);
        assert_eq!(state.removed.len(), 1, "readers may use it for an hour of this clock");
        // When the clock is right again, nobody knows how long ago that was: the file is left to the deletion of remains, which
        // counts by the times of the storage.
        state.apply(commit(NOW_US, &[], &["b"]), 6);
        assert_eq!(state.removed.keys().collect::<Vec<_>>(), ["b"]);
        assert_eq!(state.files.keys().collect::<Vec<_>>(), ["c", "d"]);
    }
}
