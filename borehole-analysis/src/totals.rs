//! Inclusive counts: in how many samples a group of frames occurs anywhere in the stack.
//!
//! A group that occurs several times in a stack counts once, at its occurrence nearest to the root. So its
//! total is the sum, over the nodes of the tree where it occurs without occurring above, of all samples at
//! or below that node. One walk over the tree finds those nodes and adds up what is below them.

use borehole_model::{StackId, Tables};

use crate::call_tree::CallTree;
use crate::counts::Tally;
use crate::groups::GroupId;

/// A stack that the walk entered and did not leave yet.
#[derive(Clone, Copy)]
struct Entered {
    stack: StackId,
    group: Option<GroupId>,
    /// What was found at it and below it so far.
    found: Tally,
}

/// For each of `groups` groups its total, from the tally of each stack itself.
///
/// `group_of` is `None` for a stack whose leaf is hidden. Memory is that of the deepest stack.
pub(crate) fn totals(
    tree: &CallTree,
    tables: &Tables,
    own: impl Fn(StackId) -> Tally,
    groups: usize,
    group_of: impl Fn(StackId) -> Option<GroupId>,
) -> Vec<Tally> {
    let mut totals = vec![Tally::default(); groups];
    let mut on_path = vec![0_u32; groups];
    let mut path: Vec<Entered> = Vec::new();
    let mut next = tables.first_child(None);
    loop {
        match next {
            // Of what was not placed nothing below is.
            Some(stack) if !tree.is_placed(stack) => next = tables.next_sibling(stack),
            Some(stack) => {
                let group = group_of(stack);
                if let Some(group) = group {
                    on_path[group] += 1;
                }
                path.push(Entered { stack, group, found: own(stack) });
                next = tables.first_child(Some(stack));
            }
            None => {
                let Some(Entered { stack, group, found }) = path.pop() else { return totals };
                if let Some(group) = group {
                    on_path[group] -= 1;
                    if on_path[group] == 0 {
                        totals[group] += found;
                    }
                }
                if let Some(caller) = path.last_mut() {
                    caller.found += found;
                }
                next = tables.next_sibling(stack);
            }
        }
    }
}
