//! Inclusive counts: in how many samples a group of frames occurs anywhere in the stack.
//!
//! A group that occurs several times in a stack counts once, at its occurrence nearest to the root. So its
//! total is the sum, over the nodes of the tree where it occurs without occurring above, of all samples at
//! or below that node. One walk over the tree finds those nodes.

use borehole_model::{StackId, Tables};

use crate::call_tree::CallTree;
use crate::counts::Tally;
use crate::groups::GroupId;

/// The children of every stack, as lists: the first child, and the next child of the same parent.
struct Children {
    first: Vec<Option<StackId>>,
    next: Vec<Option<StackId>>,
    first_root: Option<StackId>,
}

impl Children {
    fn of(tree: &CallTree, tables: &Tables) -> Self {
        let mut children =
            Self { first: vec![None; tree.width()], next: vec![None; tree.width()], first_root: None };
        for stack in tree.callers_first(tables) {
            let head = match tables.parent(stack) {
                Some(parent) => &mut children.first[parent.index()],
                None => &mut children.first_root,
            };
            children.next[stack.index()] = head.replace(stack);
        }
        children
    }
}

/// A step of the walk.
#[derive(Clone, Copy)]
enum Step {
    Enter(StackId),
    Leave(GroupId),
}

/// For each of `groups` groups its total, from the tally of each stack itself.
///
/// `group_of` is `None` for a stack whose leaf is hidden.
pub(crate) fn totals(
    tree: &CallTree,
    tables: &Tables,
    own: impl Iterator<Item = (StackId, Tally)> + Clone,
    groups: usize,
    mut group_of: impl FnMut(StackId) -> Option<GroupId>,
) -> Vec<Tally> {
    let children = Children::of(tree, tables);
    let mut of = |below: &[u64]| children.totals(below, groups, &mut group_of, saturating_u64);
    let counts =
        of(&at_or_below(tree, tables, own.clone().map(|(stack, own)| (stack, own.count)), saturating_u64));
    // There may be millions of stacks. Mostly time is a count of periods: then a sum of it for each is not needed.
    if let Some(period_ns) = common_period(own.clone().map(|(_, own)| own)) {
        return counts.into_iter().map(|count| Tally::of(count, period_ns)).collect();
    }
    let add = |sum: &mut u128, more| *sum = sum.saturating_add(more);
    let below = at_or_below(tree, tables, own.map(|(stack, own)| (stack, own.wall_ns)), add);
    let walls = children.totals(&below, groups, group_of, add);
    counts.into_iter().zip(walls).map(|(count, wall_ns)| Tally { count, wall_ns }).collect()
}

fn saturating_u64(sum: &mut u64, more: u64) {
    *sum = sum.saturating_add(more);
}

/// What each sample stands for, if all stand for the same.
fn common_period(own: impl Iterator<Item = Tally> + Clone) -> Option<u64> {
    let first = own.clone().find(|own| own.count > 0).unwrap_or_default();
    let period_ns = first.wall_ns.checked_div(first.count.into()).unwrap_or_default();
    let period_ns = u64::try_from(period_ns).ok()?;
    own.into_iter().all(|own| own == Tally::of(own.count, period_ns)).then_some(period_ns)
}

impl Children {
    /// For each group what `below` has where the group is met for the first time from the root.
    fn totals<T: Copy + Default>(
        &self,
        below: &[T],
        groups: usize,
        mut group_of: impl FnMut(StackId) -> Option<GroupId>,
        add: impl Fn(&mut T, T),
    ) -> Vec<T> {
        let mut totals = vec![T::default(); groups];
        let mut on_path = vec![0_u32; groups];
        let mut steps: Vec<Step> = self.first_root.map(Step::Enter).into_iter().collect();
        while let Some(step) = steps.pop() {
            let stack = match step {
                Step::Enter(stack) => stack,
                Step::Leave(group) => {
                    on_path[group] -= 1;
                    continue;
                }
            };
            steps.extend(self.next[stack.index()].map(Step::Enter));
            if let Some(group) = group_of(stack) {
                if on_path[group] == 0 {
                    add(&mut totals[group], below[stack.index()]);
                }
                on_path[group] += 1;
                steps.push(Step::Leave(group));
            }
            steps.extend(self.first[stack.index()].map(Step::Enter));
        }
        totals
    }
}

/// For each stack what it and everything that it called has.
fn at_or_below<T: Copy + Default>(
    tree: &CallTree,
    tables: &Tables,
    own: impl Iterator<Item = (StackId, T)>,
    add: impl Fn(&mut T, T),
) -> Vec<T> {
    let mut sums = vec![T::default(); tree.width()];
    for (stack, own) in own {
        add(&mut sums[stack.index()], own);
    }
    for stack in tree.callers_first(tables).rev() {
        if let Some(parent) = tables.parent(stack) {
            let sum = sums[stack.index()];
            add(&mut sums[parent.index()], sum);
        }
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_period_is_common_to_all_or_to_none() {
        let period = |own: &[Tally]| common_period(own.iter().copied());
        let (one, other) = (Tally::of(3, 1000), Tally::of(5, 1000));
        assert_eq!(period(&[]), Some(0));
        assert_eq!(period(&[Tally::default(), one, other]), Some(1000));
        assert_eq!(period(&[one, Tally::of(5, 1001)]), None);
        assert_eq!(period(&[one, Tally { count: 0, wall_ns: 7 }]), None);
    }
}
