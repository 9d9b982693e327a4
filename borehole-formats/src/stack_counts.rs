//! Samples added up by stack, for formats that keep no order in time.

use borehole_model::StackId;
#[cfg(any(feature = "pstats", feature = "tachyon-jsonl"))]
use borehole_model::Tables;

/// What stands for the stack of a sample that has none, in formats where a sample must be somewhere.
#[cfg(any(feature = "callgrind", feature = "flamegraph"))]
pub(crate) const EMPTY_STACK: &str = "[empty stack]";

/// A column of counts beside the table of stacks, and the order in which the stacks appeared.
#[derive(Default)]
pub(crate) struct StackCounts {
    counts: Vec<u64>,
    empty: u64,
    order: Vec<Option<StackId>>,
}

impl StackCounts {
    /// Adds `count` samples of a stack. Sums that do not fit stay at the largest number.
    #[inline]
    pub(crate) fn add(&mut self, stack: Option<StackId>, count: u64) {
        if count == 0 {
            return;
        }
        let sum = match stack {
            None => &mut self.empty,
            Some(id) => {
                if id.index() >= self.counts.len() {
                    self.counts.resize(id.index() + 1, 0);
                }
                &mut self.counts[id.index()]
            }
        };
        if *sum == 0 {
            self.order.push(stack);
        }
        *sum = sum.saturating_add(count);
    }

    /// How many samples a stack has.
    pub(crate) fn count(&self, stack: Option<StackId>) -> u64 {
        stack.map_or(self.empty, |id| self.counts.get(id.index()).copied().unwrap_or(0))
    }

    /// How many samples had each stack on theirs, itself included: by stack.
    #[cfg(any(feature = "pstats", feature = "tachyon-jsonl"))]
    pub(crate) fn totals(&self, tables: &Tables) -> Vec<u64> {
        let mut totals = self.counts.clone();
        totals.resize(tables.stack_count(), 0);
        for stack in tables.stack_ids().rev() {
            if let Some(caller) = tables.parent(stack) {
                totals[caller.index()] = totals[caller.index()].saturating_add(totals[stack.index()]);
            }
        }
        totals
    }

    /// The stacks that have samples and how many, in order of first appearance.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Option<StackId>, u64)> + '_ {
        self.order.iter().map(|&stack| (stack, self.count(stack)))
    }
}

#[cfg(test)]
mod tests {
    use borehole_model::{Frame, Tables};

    use super::*;

    #[test]
    fn order_is_of_first_appearance_and_nothing_counts_as_nothing() {
        let mut tables = Tables::default();
        let name = tables.intern_string(b"f").unwrap();
        let frame = tables.intern_frame(&Frame::named(name)).unwrap();
        let root = tables.intern_stack(None, frame).unwrap();
        let leaf = tables.intern_stack(Some(root), frame).unwrap();
        let mut counts = StackCounts::default();
        counts.add(Some(root), 0);
        counts.add(Some(leaf), 1);
        counts.add(None, 2);
        counts.add(Some(root), 3);
        counts.add(Some(leaf), u64::MAX);
        let all: Vec<_> = counts.iter().collect();
        assert_eq!(all, [(Some(leaf), u64::MAX), (None, 2), (Some(root), 3)]);
    }
}
