//! Selects and sorts the largest of many values.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::sink::NodeId;

/// Sorts items by size, the largest first, and items of equal size by name.
pub(crate) fn sort_largest_first<T, N: Ord + ?Sized>(
    items: &mut [T],
    size: impl Fn(&T) -> u64,
    name: impl Fn(&T) -> &N,
) {
    items.sort_by(|left, right| size(right).cmp(&size(left)).then_with(|| name(left).cmp(name(right))));
}

/// Keeps the largest values added to it, up to a given number.
#[derive(Debug)]
pub(crate) struct Largest {
    heap: BinaryHeap<Reverse<(u64, Reverse<u32>)>>,
    most: usize,
}

impl Largest {
    pub(crate) fn new(most: usize) -> Self {
        Self { heap: BinaryHeap::new(), most }
    }

    #[inline]
    pub(crate) fn push(&mut self, bytes: u64, node: NodeId) {
        let entry = Reverse((bytes, Reverse(node.0)));
        if self.heap.len() < self.most {
            self.heap.push(entry);
        } else if self.heap.peek().is_some_and(|smallest| entry < *smallest) {
            self.heap.pop();
            self.heap.push(entry);
        }
    }

    /// The values, the largest first; of equal ones, the smallest node number first.
    pub(crate) fn sorted(&self) -> Vec<(u64, NodeId)> {
        let mut entries: Vec<_> = self.heap.iter().map(|Reverse(entry)| *entry).collect();
        entries.sort_unstable_by(|left, right| right.cmp(left));
        entries.into_iter().map(|(bytes, Reverse(node))| (bytes, NodeId(node))).collect()
    }
}
