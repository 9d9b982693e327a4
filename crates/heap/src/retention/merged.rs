//! Groups of nodes that count as one.

use hashbrown::HashMap;

use crate::graph::{Graph, nodes};

/// The nodes merged into groups. Most graphs have few of them: a node that is not merged costs one bit.
#[derive(Debug, Default)]
pub(super) struct MergedNodes {
    /// One bit per node: whether it is merged with another.
    bits: Vec<u64>,
    /// The representative of each merged node; a representative's is itself.
    representatives: HashMap<u32, u32>,
    /// The next node of the same group, in a ring.
    next: HashMap<u32, u32>,
}

impl MergedNodes {
    /// Merges the nodes that represent the same memory.
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

    /// The representative of `node`.
    #[inline]
    pub(super) fn representative(&self, node: u32) -> u32 {
        if self.contains(node) { self.find(node) } else { node }
    }

    /// The node after `node` in the ring of its group; itself if it is alone.
    pub(super) fn next(&self, node: u32) -> u32 {
        self.next.get(&node).copied().unwrap_or(node)
    }

    /// The nodes of the group of `node`, including itself.
    pub(super) fn group(&self, node: u32) -> impl Iterator<Item = u32> {
        let after = move |&one: &u32| Some(self.next(one)).filter(|&next| next != node);
        std::iter::successors(Some(node), after)
    }

    fn find(&self, node: u32) -> u32 {
        self.representatives.get(&node).copied().unwrap_or(node)
    }

    /// Merges the groups of two nodes. It renames the smaller group, so that all merges together take little more time
    /// than one pass over the nodes.
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
