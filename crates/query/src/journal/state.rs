//! The state of a lake after its commits.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::record::{Commit, DataFile, supported};
use crate::tables::{DAY_US, LakeTable, SCHEMA_VERSION};

/// The time for which removed files are remembered: three days. After that, their age shows that nothing needs them.
const REMEMBERED_US: i64 = 3 * DAY_US;

/// The files of a lake after a commit.
#[derive(Clone, Debug, Default)]
pub(crate) struct LakeState {
    pub(crate) version: u64,
    /// The files by path, in a fixed order.
    pub(crate) files: BTreeMap<String, DataFile>,
    /// The checksums of all inputs.
    pub(crate) sources: BTreeSet<String>,
    /// Removed files: their paths and when they were removed. Readers of earlier states may still use them.
    pub(crate) removed: BTreeMap<String, i64>,
    pub(crate) changed_us: i64,
}

/// A state as it is stored.
#[derive(Serialize, Deserialize)]
struct StoredState {
    schema: u32,
    version: u64,
    changed_us: i64,
    files: Vec<DataFile>,
    sources: BTreeSet<String>,
    removed: BTreeMap<String, i64>,
}

impl LakeState {
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, String> {
        let stored: StoredState = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        supported(stored.schema)?;
        Ok(Self {
            version: stored.version,
            files: stored.files.into_iter().map(|file| (file.path.clone(), file)).collect(),
            sources: stored.sources,
            removed: stored.removed,
            changed_us: stored.changed_us,
        })
    }

    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let stored = StoredState {
            schema: SCHEMA_VERSION,
            version: self.version,
            changed_us: self.changed_us,
            files: self.files.values().cloned().collect(),
            sources: self.sources.clone(),
            removed: self.removed.clone(),
        };
        serde_json::to_vec(&stored).expect("strings and numbers are JSON")
    }

    pub(super) fn apply(&mut self, commit: Commit, version: u64) {
        self.version = version;
        self.changed_us = commit.at_us;
        self.removed.retain(|_, at_us| *at_us > commit.at_us.saturating_sub(REMEMBERED_US));
        for path in commit.remove {
            self.files.remove(&path);
            self.removed.insert(path, commit.at_us);
        }
        for file in commit.add {
            self.files.insert(file.path.clone(), file);
        }
        self.sources.extend(commit.sources);
        for source in commit.forgotten {
            self.sources.remove(&source);
        }
    }

    /// The files of a table.
    pub(crate) fn files_of(&self, table: LakeTable) -> impl Iterator<Item = &DataFile> {
        self.files.values().filter(move |file| file.table == table.name())
    }
}
