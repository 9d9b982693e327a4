//! The few largest of many values.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Keeps a limited number of the largest values.
#[derive(Clone, Debug, Default)]
pub(super) struct Worst<T: Ord> {
    kept: BinaryHeap<Reverse<T>>,
    most: usize,
}

impl<T: Ord> Worst<T> {
    pub(super) const fn new(most: usize) -> Self {
        Self { kept: BinaryHeap::new(), most }
    }

    #[inline]
    pub(super) fn add(&mut self, item: T) {
        if self.kept.len() < self.most {
            self.kept.push(Reverse(item));
        } else if self.kept.peek().is_some_and(|least| least.0 < item) {
            self.replace_least(item);
        }
    }

    #[cold]
    fn replace_least(&mut self, item: T) {
        if let Some(mut least) = self.kept.peek_mut() {
            *least = Reverse(item);
        }
    }

    /// The largest first.
    pub(super) fn sorted(&self) -> Vec<T>
    where
        T: Copy,
    {
        self.clone().into_sorted().collect()
    }

    /// The largest first.
    pub(super) fn into_sorted(self) -> impl Iterator<Item = T> {
        self.kept.into_sorted_vec().into_iter().map(|Reverse(item)| item)
    }
}

/// All values of some kind: their number, and the largest ones.
#[derive(Clone, Debug, Default)]
pub(super) struct Tier<T: Ord> {
    pub(super) count: u64,
    pub(super) examples: Worst<T>,
}

impl<T: Ord> Tier<T> {
    pub(super) const fn new(examples: usize) -> Self {
        Self { count: 0, examples: Worst::new(examples) }
    }

    pub(super) fn add(&mut self, item: T) {
        self.count += 1;
        self.examples.add(item);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_stay() {
        let mut worst = Worst::new(2);
        [3, 9, 1, 7].into_iter().for_each(|item| worst.add(item));
        assert_eq!(worst.into_sorted().collect::<Vec<_>>(), [9, 7]);
        let mut none = Worst::new(0);
        none.add(1);
        assert_eq!(none.into_sorted().count(), 0);
    }
}
