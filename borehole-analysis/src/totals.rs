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
    own: impl Iterator<Item = (StackId, Tally)>,
    groups: usize,
    mut group_of: impl FnMut(StackId) -> Option<GroupId>,
) -> Vec<Tally> {
    let below = at_or_below(tree, tables, own);
    let children = Children::of(tree, tables);
    let mut totals = vec![Tally::default(); groups];
    let mut on_path = vec![0_u32; groups];
    let mut steps: Vec<Step> = children.first_root.map(Step::Enter).into_iter().collect();
    while let Some(step) = steps.pop() {
        let stack = match step {
            Step::Enter(stack) => stack,
            Step::Leave(group) => {
                on_path[group] -= 1;
                continue;
            }
        };
        steps.extend(children.next[stack.index()].map(Step::Enter));
        if let Some(group) = group_of(stack) {
            if on_path[group] == 0 {
                totals[group] += below[stack.index()];
            }
            on_path[group] += 1;
            steps.push(Step::Leave(group));
        }
        steps.extend(children.first[stack.index()].map(Step::Enter));
    }
    totals
}

/// For each stack the samples of it and of everything it called.
fn at_or_below(tree: &CallTree, tables: &Tables, own: impl Iterator<Item = (StackId, Tally)>) -> Vec<Tally> {
    let mut sums = vec![Tally::default(); tree.width()];
    for (stack, tally) in own {
        sums[stack.index()] += tally;
    }
    for stack in tree.callers_first(tables).rev() {
        if let Some(parent) = tables.parent(stack) {
            let sum = sums[stack.index()];
            sums[parent.index()] += sum;
        }
    }
    sums
}
