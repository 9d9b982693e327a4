//! Groups in the order of a table.

use std::cmp::Reverse;

use borehole_model::{StackId, Tables};

use crate::call_tree::CallTree;
use crate::counts::Tally;
use crate::groups::GroupId;

/// Tallies of groups, and the order in which the groups were first met.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ranking {
    met: Vec<GroupId>,
    tallies: Vec<Tally>,
}

impl Ranking {
    /// Adds a tally, whose count is not 0, to a group.
    pub(crate) fn add(&mut self, group: GroupId, tally: Tally) {
        if group >= self.tallies.len() {
            self.tallies.resize(group + 1, Tally::default());
        }
        if self.tallies[group].count == 0 {
            self.met.push(group);
        }
        self.tallies[group] += tally;
    }

    pub(crate) fn tally(&self, group: GroupId) -> Tally {
        self.tallies.get(group).copied().unwrap_or_default()
    }

    pub(crate) fn len(&self) -> usize {
        self.met.len()
    }

    /// The groups, the largest count first; equal ones in the order in which they were met.
    pub(crate) fn sorted(mut self) -> Vec<(GroupId, Tally)> {
        self.met.sort_by_key(|&group| Reverse(self.tallies[group].count));
        self.met.into_iter().map(|group| (group, self.tallies[group])).collect()
    }
}

/// `totals` in the order in which a reader of all samples, each from the leaf to the root, meets the groups.
///
/// A stack that was walked over is not walked again: all of its groups have been met.
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
            if let Some(group) = group_of(stack).filter(|&group| ranking.tally(group).count == 0) {
                ranking.add(group, totals[group]);
            }
            next = tables.parent(stack);
        }
    }
    ranking
}
