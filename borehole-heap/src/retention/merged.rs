//! Nodes that count as one.

use hashbrown::HashMap;

use crate::graph::{Graph, nodes};

/// Which nodes are taken for one. Most graphs have few of them: what is not merged costs a bit.
#[derive(Debug, Default)]
pub(super) struct Merged {
    /// A bit for each node: whether it is merged with another.
    bits: Vec<u64>,
    /// The node that stands for each merged one; for itself, of that one.
    representatives: HashMap<u32, u32>,
    /// The next node of the same group, around in a ring.
    next: HashMap<u32, u32>,
}

impl Merged {
    /// The nodes that stand for the same memory.
    pub(super) fn of(graph: &impl Graph) -> Self {
        let count = graph.counts().nodes;
        let mut merged = Self { bits: vec![0; count.div_ceil(64)], ..Self::default() };
        for node in nodes(count) {
            if let Some(smallest) = graph.canonical(node).filter(|&smallest| smallest < node) {
                merged.merge(smallest.0, node.0);
            }
        }
        merged
    }

    /// Whether `node` is merged with another.
    #[inline]
    pub(super) fn contains(&self, node: u32) -> bool {
        self.bits.get(node as usize / 64).is_some_and(|word| word >> (node % 64) & 1 == 1)
    }

    /// The node that stands for `node`.
    #[inline]
    pub(super) fn representative(&self, node: u32) -> u32 {
        if self.contains(node) { self.find(node) } else { node }
    }

    /// The node after `node` in its group, around; itself where it is alone.
    pub(super) fn next(&self, node: u32) -> u32 {
        self.next.get(&node).copied().unwrap_or(node)
    }

    /// The nodes that count as one with `node`, and itself.
    pub(super) fn group(&self, node: u32) -> impl Iterator<Item = u32> {
        let after = move |&one: &u32| Some(self.next(one)).filter(|&next| next != node);
        std::iter::successors(Some(node), after)
    }

    fn find(&self, node: u32) -> u32 {
        self.representatives.get(&node).copied().unwrap_or(node)
    }

    /// Makes the groups of two nodes one. The smaller group is renamed, so that all merges together take little more than a
    /// look at each node.
    pub(super) fn merge(&mut self, left: u32, right: u32) {
        let (left, right) = (self.enter(left), self.enter(right));
        if left == right {
            return;
        }
        let mut node = right;
        loop {
            self.representatives.insert(node, left);
            node = self.next(node);
            if node == right {
                break;
            }
        }
        let (after_left, after_right) = (self.next(left), self.next(right));
        self.next.insert(left, after_right);
        self.next.insert(right, after_left);
    }

    /// Makes a node a group of its own, unless it is in one.
    fn enter(&mut self, node: u32) -> u32 {
        if let Some(word) = self.bits.get_mut(node as usize / 64) {
            *word |= 1 << (node % 64);
        }
        *self.representatives.entry(node).or_insert(node)
    }
}
