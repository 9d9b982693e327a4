//! The order of stacks as text, computed over their tree: names are compared with their siblings only, and no lines are built.

use std::ops::Range;

use borehole_model::{StackId, Tables};

use super::lines::{LineNames, SEPARATOR};

/// Ranks the stacks of `tree` that `is_line` by the order of their lines.
///
/// Requires that no two siblings have the same name, and that no name contains a separator except the one at its end.
pub(super) fn places(tree: &Tables, names: &LineNames, is_line: &[bool]) -> Vec<u32> {
    let ranks = Ranks::of(&names.texts);
    let siblings = Siblings::of(tree, names, &ranks, is_line);
    let mut places = vec![0; tree.stack_count()];
    let mut open = vec![siblings.range(None)];
    let mut next = 0;
    while let Some(range) = open.last_mut() {
        let Some(at) = range.next() else {
            open.pop();
            continue;
        };
        let (rank, stack) = siblings.entries[at];
        if rank == ranks.of_end[names.number(tree.leaf(stack))] {
            places[stack.index()] = next;
            next += 1;
        } else {
            open.push(siblings.range(Some(stack)));
        }
    }
    places
}

/// The order of names, once as the end of a line and once followed by the separator: `a!` comes between `a` and `a;`.
struct Ranks {
    of_end: Vec<u32>,
    of_middle: Vec<u32>,
}

impl Ranks {
    fn of(texts: &Tables) -> Self {
        let with = |id| texts.string(id);
        let without = |id| with(id).strip_suffix(&[SEPARATOR]).unwrap_or_default();
        let mut sorted: Vec<(&[u8], usize, bool)> = texts
            .string_ids()
            .flat_map(|id| [(without(id), id.index(), true), (with(id), id.index(), false)])
            .collect();
        sorted.sort_unstable();
        let mut ranks =
            Self { of_end: vec![0; texts.string_count()], of_middle: vec![0; texts.string_count()] };
        for (rank, (_, index, is_end)) in (0..).zip(sorted) {
            let column = if is_end { &mut ranks.of_end } else { &mut ranks.of_middle };
            column[index] = rank;
        }
        ranks
    }
}

/// The callees of each stack in text order: once as the ends of lines, once as parts of longer lines.
struct Siblings {
    entries: Vec<(u32, StackId)>,
    /// The start of each stack's callees; those of the roots come first, and the end last.
    starts: Vec<usize>,
}

impl Siblings {
    fn of(tree: &Tables, names: &LineNames, ranks: &Ranks, is_line: &[bool]) -> Self {
        let mut goes_on = vec![false; tree.stack_count()];
        for caller in tree.stack_ids().filter_map(|stack| tree.parent(stack)) {
            goes_on[caller.index()] = true;
        }
        let ways = |stack: StackId| {
            let name = names.number(tree.leaf(stack));
            let end = is_line[stack.index()].then(|| ranks.of_end[name]);
            end.into_iter().chain(goes_on[stack.index()].then(|| ranks.of_middle[name]))
        };
        // Counted one position further on, so that placing the entries moves each start into position.
        let mut starts = vec![0; tree.stack_count() + 3];
        for stack in tree.stack_ids() {
            starts[group(tree.parent(stack)) + 2] += ways(stack).count();
        }
        for group in 2..starts.len() {
            starts[group] += starts[group - 1];
        }
        let Some(root) = tree.stack_ids().next() else { return Self { entries: Vec::new(), starts } };
        let mut entries = vec![(0, root); starts.last().copied().unwrap_or(0)];
        for stack in tree.stack_ids() {
            let start = &mut starts[group(tree.parent(stack)) + 1];
            for rank in ways(stack) {
                entries[*start] = (rank, stack);
                *start += 1;
            }
        }
        let mut siblings = Self { entries, starts };
        for caller in std::iter::once(None).chain(tree.stack_ids().map(Some)) {
            let range = siblings.range(caller);
            siblings.entries[range].sort_unstable();
        }
        siblings
    }

    fn range(&self, caller: Option<StackId>) -> Range<usize> {
        let group = group(caller);
        self.starts[group]..self.starts[group + 1]
    }
}

/// The group number of a stack's callees.
fn group(caller: Option<StackId>) -> usize {
    caller.map_or(0, |caller| caller.index() + 1)
}
