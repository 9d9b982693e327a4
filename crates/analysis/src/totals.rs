//! Totals of reports, without a tree of calls: a report of millions of stacks has no memory for a second tree beside them.
//!
//! A row that occurs several times on a stack counts once, at its occurrence nearest to the root. Its total is therefore the sum
//! of all samples at or below each stack where it occurs and does not occur above. One walk over the stacks of the tables finds
//! these and adds up what is below them, in the memory of the deepest stack. [`CallPaths`](crate::call_paths::CallPaths) has the
//! same totals for views that need the calls themselves.

use borehole_model::{StackId, Tables};

use crate::call_paths::Summable as _;
use crate::call_tree::CallTree;
use crate::counts::Tally;
use crate::groups::GroupId;

/// A stack that the walk has entered and not left.
#[derive(Clone, Copy)]
struct Entered {
    stack: StackId,
    group: Option<GroupId>,
    /// The sum of the samples found at it and below it so far.
    found: Tally,
}

/// Returns the total of each of `groups` groups. `own` is the tally of a stack itself; `group_of` is `None` for a stack whose
/// leaf is hidden.
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
            // Nothing below a stack that was not derived was derived.
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
