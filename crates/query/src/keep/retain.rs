//! Retention: removal of old rows.

use std::collections::BTreeSet;

use super::amend::{Affected, AmendMode, Amended, Amendment};
use super::compact::SORT_BYTES;
use crate::journal::{Commit, DataFile, Intent, LakeState, Operation, now_us};
use crate::literal::text;
use crate::tables::{DAY_US, LakeTable};
use crate::{Error, Lake};

/// The number of times that the search for unused stacks starts again while others add.
const TRIES: usize = 5;

/// Rows to keep for a number of days.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Retention {
    /// The age from which rows are removed.
    pub days: u32,
    /// Only rows of this service.
    pub service: Option<String>,
    /// Only rows of this table.
    pub table: Option<String>,
    /// Only rows of `measures` of this kind, such as `alloc_space`.
    pub kind: Option<String>,
}

impl Retention {
    /// All rows.
    #[must_use]
    pub fn days(days: u32) -> Self {
        Self { days, ..Self::default() }
    }

    /// The rows of a file that are too old.
    fn affected(&self, file: &DataFile, now_us: i64) -> Option<Affected> {
        let table = file.table().filter(|&table| table != LakeTable::Stacks)?;
        let is_of_table = match (&self.table, &self.kind) {
            (Some(name), _) => table.name() == name,
            (None, Some(_)) => table == LakeTable::Measures,
            (None, None) => true,
        };
        let before_us = now_us.saturating_sub(i64::from(self.days).saturating_mul(DAY_US));
        if !is_of_table || !is_before(file, before_us, now_us) {
            return None;
        }
        let mut conditions = Vec::new();
        if let Some(service) = &self.service {
            match &file.service {
                Some(of_file) if of_file != service => return None,
                Some(_) => {}
                None => conditions.push(format!("service = {}", text(service))),
            }
        }
        conditions.extend(self.kind.iter().map(|kind| format!("kind = {}", text(kind))));
        Some(if conditions.is_empty() { Affected::All } else { Affected::Where(conditions.join(" AND ")) })
    }
}

/// Whether all rows of a file are from before a time. Those that a wrong clock dated ahead count from when they were added.
fn is_before(file: &DataFile, before_us: i64, now_us: i64) -> bool {
    file.span_us.is_some_and(|(first, last)| {
        let is_ahead = first > now_us.saturating_add(DAY_US);
        last < before_us || (is_ahead && file.added_us.is_some_and(|added| added < before_us))
    })
}

impl Lake {
    /// Removes rows in files whose rows are all older than a number of days, and stacks that no sample uses any more. Inputs of
    /// which `sources` has no row any more may be added again.
    ///
    /// # Errors
    /// If there is no such table, or the storage fails. Work finished by then stays intact.
    pub fn retain(&self, retention: &Retention) -> Result<Amended, Error> {
        if let Some(table) = &retention.table {
            LakeTable::expect(table)?;
        }
        if retention.kind.is_some() && retention.table.as_deref().is_some_and(|table| table != "measures") {
            return Err(Error::question("only the table measures has kinds"));
        }
        let now_us = now_us();
        let amendment = Amendment::new(self, Operation::Retain, None, AmendMode::Change);
        let mut retained = amendment.run(|state| {
            let affected = |file: &DataFile| Some((file.clone(), retention.affected(file, now_us)?));
            Ok(state.files.values().filter_map(affected).collect())
        })?;
        if retained.files > 0 {
            retained.stacks = self.drop_unused_stacks()?;
        }
        retained.cleared = self.clear()?;
        Ok(retained)
    }

    /// The number of distinct stacks.
    fn stack_count(&self, state: &LakeState) -> Result<u64, Error> {
        let context = self.context_of(state, Some(SORT_BYTES))?;
        let counted = async { context.sql("SELECT stack_id FROM stacks").await?.count().await };
        Ok(self.block_on(counted)? as u64)
    }

    /// Rewrites the stacks that samples use. Starts again if others add meanwhile and may need a stack about to be removed.
    pub(super) fn drop_unused_stacks(&self) -> Result<u64, Error> {
        for _ in 0..TRIES {
            let state = self.state()?;
            let of_stacks: Vec<_> = state.files_of(LakeTable::Stacks).cloned().collect();
            let before = self.stack_count(&state)?;
            let sql = "SELECT stack_id, stack, frames FROM stacks LEFT SEMI JOIN \
                       (SELECT stack_id FROM samples UNION SELECT stack_id FROM measures) AS used USING (stack_id)";
            let written = self.rewrite(&(LakeTable::Stacks, None, None), &state, sql)?;
            let after: u64 = written.iter().map(|file| file.rows).sum();
            let mut commit = Commit::new(Operation::Retain, now_us());
            let named = of_stacks.iter().any(|file| file.named);
            commit.add = written.iter().map(|file| DataFile { named, ..file.clone() }).collect();
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
