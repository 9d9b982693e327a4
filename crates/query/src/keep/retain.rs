//! Retention: removal of old files.

use std::collections::BTreeSet;

use datafusion::arrow::array::Array;

use super::clear::Cleared;
use crate::journal::{Commit, DataFile, Intent, LakeState, Operation, now_us};
use crate::tables::{DAY_US, LakeTable};
use crate::value::{LakeValue, value_at};
use crate::{Error, Lake};

/// The number of times that the search for unused stacks starts again while others add.
const TRIES: usize = 5;

/// The result of a removal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Retained {
    /// The number of files removed.
    pub files: u64,
    /// Their rows.
    pub rows: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The number of stacks that no sample used any more.
    pub stacks: u64,
    /// The result of the deletion afterwards.
    pub cleared: Cleared,
}

impl Lake {
    /// Removes files whose rows are all older than `days` days, and stacks that no sample uses any more. Inputs that have no
    /// rows left may be added again.
    ///
    /// # Errors
    /// If the storage fails. Work finished by then stays intact.
    pub fn retain(&self, days: u32) -> Result<Retained, Error> {
        let before_us = now_us().saturating_sub(i64::from(days).saturating_mul(DAY_US));
        let mut retained = Retained::default();
        let intend = async |state: &LakeState| {
            let is_old = |file: &&DataFile| file.span_us.is_some_and(|(_, last)| last < before_us);
            let old: Vec<_> = state.files.values().filter(is_old).collect();
            retained = Retained::default();
            if old.is_empty() {
                return Ok(Intent::Nothing);
            }
            let mut commit = Commit::new(Operation::Retain, now_us());
            for file in old {
                retained.files += 1;
                retained.rows += file.rows;
                retained.bytes += file.bytes;
                commit.remove.push(file.path.clone());
                if file.table() == Some(LakeTable::Sources) {
                    let source = |column: &dyn Array, row: usize| match value_at(column, row) {
                        LakeValue::Text(text) => Some(text),
                        _ => None,
                    };
                    commit.forgotten.extend(self.read_column(file, "source", source).await?);
                }
            }
            Ok(Intent::Commit(commit))
        };
        self.block_on(self.journal.transact(intend))?;
        if retained.files > 0 {
            retained.stacks = self.drop_unused_stacks()?;
        }
        retained.cleared = self.clear()?;
        Ok(retained)
    }

    /// Rewrites the stacks that samples use. Starts again if others add meanwhile and may need a stack about to be removed.
    fn drop_unused_stacks(&self) -> Result<u64, Error> {
        for _ in 0..TRIES {
            let state = self.state()?;
            let of_stacks: Vec<_> = state.files_of(LakeTable::Stacks).cloned().collect();
            let before: u64 = of_stacks.iter().map(|file| file.rows).sum();
            let sql = "SELECT stack_id, stack, frames FROM stacks LEFT SEMI JOIN \
                       (SELECT stack_id FROM samples UNION SELECT stack_id FROM measures) AS used USING (stack_id)";
            let written = self.rewrite(&(LakeTable::Stacks, None, None), &state, sql)?;
            let after: u64 = written.iter().map(|file| file.rows).sum();
            let mut commit = Commit::new(Operation::Retain, now_us());
            commit.add.clone_from(&written);
            commit.remove = of_stacks.into_iter().map(|file| file.path).collect();
            let seen = users_of_stacks(&state);
            let mut is_overtaken = false;
            let intend = async |now: &LakeState| {
                is_overtaken = users_of_stacks(now) != seen;
                let is_needed = after < before && !is_overtaken;
                Ok(if is_needed { Intent::Commit(commit.clone()) } else { Intent::Nothing })
            };
            self.block_on(self.journal.transact(intend))?;
            if !is_overtaken && after < before {
                return Ok(before - after);
            }
            written.iter().try_for_each(|file| self.block_on(self.place.delete(&file.path)))?;
            if !is_overtaken {
                return Ok(0);
            }
        }
        Ok(0)
    }
}

/// The files of stacks and of the tables that refer to them.
fn users_of_stacks(state: &LakeState) -> BTreeSet<String> {
    let tables = [LakeTable::Stacks, LakeTable::Samples, LakeTable::Measures];
    tables.into_iter().flat_map(|table| state.files_of(table)).map(|file| file.path.clone()).collect()
}
