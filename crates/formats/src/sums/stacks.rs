//! Samples added up by stack, for formats without an order in time.

use borehole_model::StackId;
use borehole_model::Tables;

/// Placeholder for the stack of a sample without one, in formats that need a stack.
pub(crate) const EMPTY_STACK: &str = "[empty stack]";

/// A column of counts beside the table of stacks, with the stacks' order of appearance.
#[derive(Clone, Default)]
pub(crate) struct StackCounts {
    counts: Vec<u64>,
    empty: u64,
    order: Vec<Option<StackId>>,
}

impl StackCounts {
    /// Adds `count` samples of a stack. Sums saturate.
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

    /// Removes all samples.
    pub(crate) fn clear(&mut self) {
        self.counts.clear();
        self.order.clear();
        self.empty = 0;
    }

    /// The number of samples of a stack.
    pub(crate) fn count(&self, stack: Option<StackId>) -> u64 {
        stack.map_or(self.empty, |id| self.counts.get(id.index()).copied().unwrap_or(0))
    }

    /// By stack: its total samples.
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

    /// The samples with stacks of fewer than `least` total samples, or of more than `depth` frames, counted as their callers'. The
    /// stacks, of `tables`, are in the order of the table.
    pub(crate) fn gathered(&self, tables: &Tables, least: u64, depth: u32) -> Self {
        let totals = self.totals(tables);
        let mut counts = self.counts.clone();
        counts.resize(tables.stack_count(), 0);
        for stack in tables.stack_ids().rev() {
            if let Some(caller) = tables.parent(stack)
                && (totals[stack.index()] < least || tables.depth(stack) > depth)
            {
                let moved = std::mem::take(&mut counts[stack.index()]);
                counts[caller.index()] = counts[caller.index()].saturating_add(moved);
            }
        }
        let mut gathered = Self { counts, empty: self.empty, order: Vec::new() };
        let all = tables.stack_ids().map(Some).chain([None]);
        gathered.order = all.filter(|&stack| gathered.count(stack) > 0).collect();
        gathered
    }

    /// The stacks with samples and their numbers, in order of first appearance.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Option<StackId>, u64)> + '_ {
        self.order.iter().map(|&stack| (stack, self.count(stack)))
    }
}

#[cfg(test)]
mod tests {
    use borehole_model::{Frame, Tables};

    use super::*;

    #[test]
    fn stacks_are_in_order_of_first_appearance_and_zero_counts_are_ignored() {
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

    #[test]
    fn stacks_with_few_samples_and_deep_ones_are_counted_as_their_callers() {
        let mut tables = Tables::default();
        let mut frame = |name: &[u8]| {
            let name = tables.intern_string(name).unwrap();
            tables.intern_frame(&Frame::named(name)).unwrap()
        };
        let (f, g) = (frame(b"f"), frame(b"g"));
        let root = tables.intern_stack(None, f).unwrap();
        let narrow = tables.intern_stack(Some(root), f).unwrap();
        let below = tables.intern_stack(Some(narrow), f).unwrap();
        let wide = tables.intern_stack(Some(root), g).unwrap();
        let below_wide = tables.intern_stack(Some(wide), g).unwrap();
        let mut counts = StackCounts::default();
        for (stack, count) in [(narrow, 2), (below, 2), (wide, 4), (below_wide, 1)] {
            counts.add(Some(stack), count);
        }
        counts.add(None, 1);
        let gathered = |least, depth| counts.gathered(&tables, least, depth).iter().collect::<Vec<_>>();
        assert_eq!(gathered(5, 9), [(Some(root), 4), (Some(wide), 5), (None, 1)]);
        assert_eq!(gathered(1, 3).len(), 5);
        assert_eq!(gathered(1, 2), [(Some(narrow), 4), (Some(wide), 5), (None, 1)]);
        assert_eq!(gathered(1, 1), [(Some(root), 9), (None, 1)]);
    }
}
