//! Stacks as parent pointers.
//!
//! Constraints: a parent is stored before its children, so a walk towards the root always ends; a `(parent, frame)`
//! pair is stored once, so equal stacks have equal ids; the empty stack has no row and is `None` wherever a stack is
//! named.
//!
//! The children of a stack form a chain. Most stacks have few children, so only those far back in the chain are also in
//! the hash index. Deep stacks then take 20 bytes a frame, and following one touches adjacent rows.

use std::hash::BuildHasher as _;

use borehole_memory::HeldBytes as _;
use hashbrown::{DefaultHashBuilder, HashTable};

use crate::ids::{FrameId, Id as _, StackId};

#[derive(Clone, Copy, Debug)]
struct Node {
    parent: Option<StackId>,
    frame: FrameId,
    first_child: Option<StackId>,
    /// The next child of the same parent in the chain.
    next_sibling: Option<StackId>,
    depth: u32,
}

/// The number of children searched in the chain; this many steps cost less than a lookup in the index.
const CHAINED: usize = 3;

#[derive(Clone, Debug, Default)]
pub(crate) struct StackTable {
    nodes: Vec<Node>,
    /// The stacks beyond the first [`CHAINED`] of their chain.
    index: HashTable<StackId>,
    hasher: DefaultHashBuilder,
    /// The last stack that was interned whole, root first: consecutive stacks share most of their callers.
    last_path: Vec<StackId>,
}

impl StackTable {
    /// The memory of a stack.
    pub(crate) const ROW_BYTES: usize = size_of::<Node>();

    /// Interns a whole stack; `Some(None)` if it has no frames.
    pub(crate) fn intern_leaf_first(&mut self, frames: &[FrameId]) -> Option<Option<StackId>> {
        let mut path = std::mem::take(&mut self.last_path);
        let is_shared = |&(&id, &frame): &(&StackId, &FrameId)| self.frame(id) == frame;
        let shared = path.iter().zip(frames.iter().rev()).take_while(is_shared).count();
        path.truncate(shared);
        for &frame in frames[..frames.len() - shared].iter().rev() {
            path.push(self.intern(path.last().copied(), frame)?);
        }
        let stack = path.last().copied();
        self.last_path = path;
        Some(stack)
    }

    #[inline]
    pub(crate) fn intern(&mut self, parent: Option<StackId>, frame: FrameId) -> Option<StackId> {
        let (mut before, mut next) = (None, self.first_child(parent));
        for _ in 0..CHAINED {
            let Some(child) = next else { return self.push(parent, before, frame) };
            if self.frame(child) == frame {
                return Some(child);
            }
            (before, next) = (next, self.next_sibling(child));
        }
        self.intern_further(parent, before, frame)
    }

    /// The first child of `parent`. The first root is always row 0.
    #[inline]
    pub(crate) fn first_child(&self, parent: Option<StackId>) -> Option<StackId> {
        match parent {
            Some(parent) => self.nodes[parent.row()].first_child,
            None => self.nodes.first().and_then(|_| StackId::from_row(0)),
        }
    }

    /// The next stack with the same parent.
    #[inline]
    pub(crate) fn next_sibling(&self, id: StackId) -> Option<StackId> {
        self.nodes[id.row()].next_sibling
    }

    fn intern_further(
        &mut self,
        parent: Option<StackId>,
        before: Option<StackId>,
        frame: FrameId,
    ) -> Option<StackId> {
        let hash = self.hasher.hash_one((parent, frame));
        let is_wanted = |&id: &StackId| self.parent(id) == parent && self.frame(id) == frame;
        if let Some(&id) = self.index.find(hash, is_wanted) {
            return Some(id);
        }
        let id = self.push(parent, before, frame)?;
        let Self { nodes, index, hasher, .. } = self;
        let key = |id: StackId| (nodes[id.row()].parent, nodes[id.row()].frame);
        index.insert_unique(hash, id, |&id| hasher.hash_one(key(id)));
        Some(id)
    }

    /// Adds a child of `parent`, in the chain after `before`, or at its beginning.
    fn push(&mut self, parent: Option<StackId>, before: Option<StackId>, frame: FrameId) -> Option<StackId> {
        let id = StackId::from_row(self.nodes.len())?;
        let depth = parent.map_or(0, |parent| self.depth(parent)).checked_add(1)?;
        let place = match (before, parent) {
            (Some(before), _) => Some(&mut self.nodes[before.row()].next_sibling),
            (None, Some(parent)) => Some(&mut self.nodes[parent.row()].first_child),
            (None, None) => None,
        };
        let next_sibling = place.and_then(|place| place.replace(id));
        self.nodes.push(Node { parent, frame, first_child: None, next_sibling, depth });
        Some(id)
    }

    #[inline]
    pub(crate) fn frame(&self, id: StackId) -> FrameId {
        self.nodes[id.row()].frame
    }

    #[inline]
    pub(crate) fn parent(&self, id: StackId) -> Option<StackId> {
        self.nodes[id.row()].parent
    }

    #[inline]
    pub(crate) fn depth(&self, id: StackId) -> u32 {
        self.nodes[id.row()].depth
    }

    /// Removes all stacks but keeps the allocated memory.
    pub(crate) fn clear(&mut self) {
        self.nodes.clear();
        self.index.clear();
        self.last_path.clear();
    }

    pub(crate) fn held_bytes(&self) -> usize {
        self.nodes.held_bytes() + self.index.allocation_size() + self.last_path.held_bytes()
    }

    pub(crate) const fn len(&self) -> usize {
        self.nodes.len()
    }

    pub(crate) const fn frames_leaf_first(&self, stack: Option<StackId>) -> FramesLeafFirst<'_> {
        FramesLeafFirst { stacks: self, next: stack }
    }
}

/// The frames of a stack, from the leaf (the function that was executing) to the root.
#[derive(Clone, Debug)]
pub struct FramesLeafFirst<'a> {
    stacks: &'a StackTable,
    next: Option<StackId>,
}

impl Iterator for FramesLeafFirst<'_> {
    type Item = FrameId;

    #[inline]
    fn next(&mut self) -> Option<FrameId> {
        let node = self.stacks.nodes[self.next?.row()];
        self.next = node.parent;
        Some(node.frame)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.next.map_or(0, |id| self.stacks.depth(id) as usize);
        (left, Some(left))
    }
}

impl ExactSizeIterator for FramesLeafFirst<'_> {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interning_a_whole_stack_does_not_depend_on_earlier_ones() {
        let mut stacks = StackTable::default();
        let frames: Vec<_> = (0..4).map(|row| FrameId::from_row(row).unwrap()).collect();
        let whole = [[3, 2, 0].as_slice(), &[2, 0], &[3, 1, 0], &[], &[3], &[3, 2, 0], &[1, 0], &[3, 1, 0]];
        let leaf_first = whole.map(|rows: &[usize]| rows.iter().map(|&row| frames[row]).collect::<Vec<_>>());
        for leaf_first in leaf_first.iter().chain(leaf_first.iter().rev()) {
            let mut expected = None;
            for &frame in leaf_first.iter().rev() {
                expected = stacks.intern(expected, frame);
            }
            assert_eq!(stacks.intern_leaf_first(leaf_first), Some(expected));
        }
        assert_eq!(stacks.len(), 6);
    }

    #[test]
    fn forgotten_stacks_are_numbered_anew() {
        let mut stacks = StackTable::default();
        let frames: Vec<_> = (0..9).map(|row| FrameId::from_row(row).unwrap()).collect();
        let first = stacks.intern_leaf_first(&frames);
        let roots: Vec<_> = frames.iter().map(|&frame| stacks.intern(None, frame)).collect();
        stacks.clear();
        assert_eq!(stacks.len(), 0);
        assert_eq!((stacks.intern_leaf_first(&frames), stacks.len()), (first, 9));
        assert_eq!(frames.iter().map(|&frame| stacks.intern(None, frame)).collect::<Vec<_>>(), roots);
    }

    #[test]
    fn chained_and_further_children_are_stored_once_and_depths_count_from_the_root() {
        let mut stacks = StackTable::default();
        let frames: Vec<_> = (0..100).map(|row| FrameId::from_row(row).unwrap()).collect();
        let mut known = Vec::new();
        for round in 0..2 {
            let mut number = 0;
            for &root in &frames {
                let parent = stacks.intern(None, root);
                for &leaf in &frames {
                    let id = stacks.intern(parent, leaf).unwrap();
                    assert_eq!((stacks.parent(id), stacks.frame(id), stacks.depth(id)), (parent, leaf, 2));
                    if round == 0 {
                        known.push(id);
                    }
                    assert_eq!(id, known[number]);
                    number += 1;
                }
            }
        }
        assert_eq!(stacks.len(), 100 + 100 * 100);
        let children = |parent| {
            let mut found: Vec<_> =
                std::iter::successors(stacks.first_child(parent), |&id| stacks.next_sibling(id)).collect();
            found.sort_unstable();
            found
        };
        for parent in children(None) {
            assert_eq!(children(Some(parent)).len(), 100);
            assert!(children(Some(parent)).iter().all(|&child| stacks.parent(child) == Some(parent)));
        }
        assert_eq!(stacks.index.len(), 97 + 100 * 97);
    }
}
