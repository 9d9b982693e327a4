//! Top tables: the heaviest functions by self and by total weight.

use std::cmp::Reverse;

use hashbrown::HashMap;

use crate::call_paths::Summable as _;
use crate::calls::Calls;
use crate::profile::Profile;
use crate::profile::situations::{Situation, SituationId};
use crate::query::By;
use crate::selection::Selection;
use crate::view::GroupValue;

/// A row of a top table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TopRow {
    /// The row of the [`Calls`].
    pub frame: usize,
    /// Self weight: that of samples whose leaf it is.
    pub own: i64,
    /// Total weight: that of samples that have it on the stack, each counted once.
    pub total: i64,
}

/// The order of a top table. Equal rows are in order of first appearance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum SortBy {
    /// [`TopRow::own`], then [`TopRow::total`].
    #[default]
    Own,
    /// [`TopRow::total`], then [`TopRow::own`].
    Total,
}

/// A row of a table of sample properties, such as labels, processes or threads.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupRow {
    /// The value.
    pub value: GroupValue,
    /// The weight of its samples.
    pub total: i64,
}

impl Calls {
    /// All rows that have a weight, heaviest first.
    #[must_use]
    pub fn top(&self, sort: SortBy) -> Vec<TopRow> {
        let mut rows = self.sums().rows(self.paths());
        match sort {
            SortBy::Own => rows.sort_by_key(|row| Reverse((row.own, row.total))),
            SortBy::Total => rows.sort_by_key(|row| Reverse((row.total, row.own))),
        }
        rows
    }

    /// The samples that count by a label, process, thread or interpreter, heaviest first. Empty if `by` is a property
    /// of frames.
    #[must_use]
    pub fn by(&self, profile: &Profile, selection: &Selection, by: &By) -> Vec<GroupRow> {
        let mut groups: Vec<GroupRow> = Vec::new();
        let mut of_situation: HashMap<SituationId, usize> = HashMap::new();
        let mut index: HashMap<GroupValue, usize> = HashMap::new();
        profile.each(selection, self.weight(), |pair, _, weight| {
            if self.paths().of_stack(pair.stack).is_none() {
                return;
            }
            let group = *of_situation.entry(pair.situation).or_insert_with(|| {
                let value = value_of(profile, profile.situations.get(pair.situation), by);
                *index.entry(value.clone()).or_insert_with(|| {
                    groups.push(GroupRow { value, total: 0 });
                    groups.len() - 1
                })
            });
            groups[group].total.add(weight);
        });
        groups.sort_by_key(|row| Reverse(row.total));
        groups
    }
}

fn value_of(profile: &Profile, situation: &Situation, by: &By) -> GroupValue {
    match by {
        By::Label(key) => profile.label_of(situation, key).map_or(GroupValue::Absent, GroupValue::Label),
        By::Process => situation.process.map_or(GroupValue::Absent, GroupValue::Process),
        By::Thread => profile.thread_of(situation),
        By::Interpreter => situation.interpreter.map_or(GroupValue::Absent, GroupValue::Interpreter),
        By::File | By::Class => GroupValue::Absent,
    }
}
