//! Top tables: the heaviest functions by self and by total weight.

use std::cmp::Reverse;

use hashbrown::HashMap;

use crate::call_paths::Summable as _;
use crate::calls::{Calls, TopRow};
use crate::profile::Profile;
use crate::profile::situations::SituationId;
use crate::query::By;
use crate::selection::SampleSelection;
use crate::view::GroupValue;

/// The order of a top table. Equal rows are in order of first appearance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum SortBy {
    /// [`TopRow::self_weight`], then [`TopRow::total_weight`].
    #[default]
    SelfWeight,
    /// [`TopRow::total_weight`], then [`TopRow::self_weight`].
    TotalWeight,
}

/// A row of a table of sample properties, such as labels, processes or threads.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupRow {
    /// The value.
    pub value: GroupValue,
    /// The weight of its samples.
    pub weight: i64,
}

impl Calls {
    /// All rows that have a weight, heaviest first.
    #[must_use]
    pub fn top(&self, sort: SortBy) -> Vec<TopRow> {
        let mut rows = self.sums.rows(&self.paths);
        match sort {
            SortBy::SelfWeight => rows.sort_by_key(|row| Reverse((row.self_weight, row.total_weight))),
            SortBy::TotalWeight => rows.sort_by_key(|row| Reverse((row.total_weight, row.self_weight))),
        }
        rows
    }

    /// The samples that count by a label, process, thread or interpreter, heaviest first. Empty if `by` is a property
    /// of frames.
    #[must_use]
    pub fn by(&self, profile: &Profile, selection: &SampleSelection, by: &By) -> Vec<GroupRow> {
        let mut groups: Vec<GroupRow> = Vec::new();
        let mut of_situation: HashMap<SituationId, usize> = HashMap::new();
        let mut index: HashMap<GroupValue, usize> = HashMap::new();
        profile.each(selection, self.weight(), |pair, _, weight| {
            if self.paths.of_stack(pair.stack).is_none() {
                return;
            }
            let group = *of_situation.entry(pair.situation).or_insert_with(|| {
                let value = profile.group_of(profile.situations.get(pair.situation), by);
                *index.entry(value.clone()).or_insert_with(|| {
                    groups.push(GroupRow { value, weight: 0 });
                    groups.len() - 1
                })
            });
            groups[group].weight.add(weight);
        });
        groups.sort_by_key(|row| Reverse(row.weight));
        groups
    }
}
