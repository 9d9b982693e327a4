//! The number of samples by thread and stack.

use borehole_model::StackId;
use hashbrown::HashMap;

use crate::stack_counts::StackCounts;

/// A sum for each pair of thread and stack.
///
/// Usually only one thread is sampled, so the sums of the first thread are a column, which needs no hashing.
#[derive(Default)]
pub(super) struct Counts {
    first_thread: Option<Option<u64>>,
    first: StackCounts,
    others: HashMap<(Option<u64>, Option<StackId>), u64>,
}

impl Counts {
    /// Adds `count` samples. Sums saturate.
    #[inline]
    pub(super) fn add(&mut self, thread: Option<u64>, stack: Option<StackId>, count: u64) {
        if *self.first_thread.get_or_insert(thread) == thread {
            return self.first.add(stack, count);
        }
        let sum = self.others.entry((thread, stack)).or_default();
        *sum = sum.saturating_add(count);
    }

    /// All pairs that have samples, with their sums.
    pub(super) fn iter(&self) -> impl Iterator<Item = ((Option<u64>, Option<StackId>), u64)> {
        let thread = self.first_thread.flatten();
        let first = self.first.iter().map(move |(stack, count)| ((thread, stack), count));
        first.chain(self.others.iter().map(|(&key, &count)| (key, count)))
    }
}
