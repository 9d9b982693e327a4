//! The order of table rows.

use std::cmp::Reverse;

use borehole_model::{StackId, Tables};

use crate::call_paths::Summable as _;
use crate::call_tree::CallTree;
use crate::counts::Tally;
use crate::groups::GroupId;

/// The number of a tally that rows are sorted by and that percentages are relative to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Basis {
    Count,
    Value,
}

impl Basis {
    pub(crate) fn of(self, tally: Tally) -> i128 {
        match self {
            Self::Count => i128::from(tally.count),
            Self::Value => tally.value,
        }
    }
}

/// Tallies of groups, with the groups in order of first appearance.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ranking {
    met: Vec<GroupId>,
    is_met: Vec<bool>,
    tallies: Vec<Tally>,
}

impl Ranking {
    /// Adds a tally to a group.
    pub(crate) fn add(&mut self, group: GroupId, tally: Tally) {
        if group >= self.tallies.len() {
            self.tallies.resize(group + 1, Tally::default());
            self.is_met.resize(group + 1, false);
        }
        if !std::mem::replace(&mut self.is_met[group], true) {
            self.met.push(group);
        }
        self.tallies[group].add(tally);
    }

    fn has(&self, group: GroupId) -> bool {
        self.is_met.get(group).is_some_and(|&is_met| is_met)
    }

    pub(crate) fn len(&self) -> usize {
        self.met.len()
    }

    /// The groups, largest by `basis` first; equal ones in order of first appearance.
    pub(crate) fn sorted(mut self, basis: Basis) -> Vec<(GroupId, Tally)> {
        self.met.sort_by_key(|&group| Reverse(basis.of(self.tallies[group])));
        self.met.into_iter().map(|group| (group, self.tallies[group])).collect()
    }
}

/// The `totals` in the order in which a reader of all samples, each from leaf to root, meets the groups.
///
/// A walk stops at a stack that was walked before, because all of its groups have been met.
pub(crate) fn rank_totals(
    tree: &CallTree,
    tables: &Tables,
    stacks: impl Iterator<Item = StackId>,
    totals: &[Tally],
    mut group_of: impl FnMut(StackId) -> Option<GroupId>,
) -> Ranking {
    let mut ranking = Ranking::default();
    let mut walked = vec![false; tree.width()];
    for stack in stacks {
        let mut next = Some(stack);
        while let Some(stack) = next.filter(|stack| !walked[stack.index()]) {
            walked[stack.index()] = true;
            if let Some(group) = group_of(stack).filter(|&group| !ranking.has(group)) {
                ranking.add(group, totals[group]);
            }
            next = tables.parent(stack);
        }
    }
    ranking
}

/// A sort key for rows: the largest comes first.
pub type SortKey<'k, T, K> = &'k dyn Fn(&T) -> K;

/// The rows that are among the first `count` in at least one of the orders, in their original order.
///
/// A table cut by one order only would lack the first rows of the others.
///
/// # Examples
///
/// ```
/// let rows = vec![("leaf", 9, 9), ("other", 5, 5), ("main", 0, 14)];
/// let kept = borehole_analysis::leading(rows, 1, &[&|row| row.1, &|row| row.2]);
/// assert_eq!(kept, [("leaf", 9, 9), ("main", 0, 14)]);
/// ```
#[must_use]
pub fn leading<T, K: Ord>(rows: Vec<T>, count: usize, orders: &[SortKey<'_, T, K>]) -> Vec<T> {
    if rows.len() <= count {
        return rows;
    }
    let mut is_kept = vec![false; rows.len()];
    let mut places: Vec<usize> = (0..rows.len()).collect();
    for key in orders {
        // Among equal rows, the earlier ones are kept.
        places.select_nth_unstable_by_key(count, |&place| (Reverse(key(&rows[place])), place));
        for &place in &places[..count] {
            is_kept[place] = true;
        }
    }
    rows.into_iter().zip(is_kept).filter_map(|(row, is_kept)| is_kept.then_some(row)).collect()
}
