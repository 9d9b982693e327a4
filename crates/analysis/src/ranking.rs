//! The totals of table rows, and their order.

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

/// A stack that the walk has entered and not left.
#[derive(Clone, Copy)]
struct EnteredStack {
    stack: StackId,
    group: Option<GroupId>,
    /// The sum of the samples found at it and below it so far.
    found: Tally,
}

/// Returns the total of each of `groups` groups, without a tree of calls: a report of millions of stacks has no memory for a
/// second tree. [`CallPaths`](crate::call_paths::CallPaths) has the same totals for views that need the calls themselves.
///
/// A row that occurs several times on a stack counts once, at its occurrence nearest to the root. Its total is therefore the sum
/// of all samples at or below each stack where it occurs and does not occur above. One walk over the stacks of the tables finds
/// these and adds up what is below them, in the memory of the deepest stack.
///
/// `self_tally` is the tally of the samples of a stack itself; `group_of` is `None` for a stack whose leaf is hidden.
pub(crate) fn totals(
    tree: &CallTree,
    tables: &Tables,
    self_tally: impl Fn(StackId) -> Tally,
    groups: usize,
    group_of: impl Fn(StackId) -> Option<GroupId>,
) -> Vec<Tally> {
    let mut totals = vec![Tally::default(); groups];
    let mut on_path = vec![0_u32; groups];
    let mut path: Vec<EnteredStack> = Vec::new();
    let mut next = tables.first_child(None);
    loop {
        match next {
            // Stacks below one that was not derived were not derived either.
            Some(stack) if !tree.is_placed(stack) => next = tables.next_sibling(stack),
            Some(stack) => {
                let group = group_of(stack);
                if let Some(group) = group {
                    on_path[group] += 1;
                }
                path.push(EnteredStack { stack, group, found: self_tally(stack) });
                next = tables.first_child(Some(stack));
            }
            None => {
                let Some(EnteredStack { stack, group, found }) = path.pop() else { return totals };
                if let Some(group) = group {
                    on_path[group] -= 1;
                    if on_path[group] == 0 {
                        totals[group].add(found);
                    }
                }
                if let Some(caller) = path.last_mut() {
                    caller.found.add(found);
                }
                next = tables.next_sibling(stack);
            }
        }
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
