//! Stacks as parent pointers.
//!
//! Constraints: a parent is stored before its children, so a walk towards the root always ends; a
//! `(parent, frame)` pair is stored once, so equal stacks have equal ids; the empty stack has no row and is
//! `None` wherever a stack is named.

use std::hash::BuildHasher as _;

use hashbrown::{DefaultHashBuilder, HashTable};

use crate::ids::{FrameId, Id as _, StackId};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Node {
    parent: Option<StackId>,
    frame: FrameId,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct StackTable {
    nodes: Vec<Node>,
    depths: Vec<u32>,
    index: HashTable<StackId>,
    hasher: DefaultHashBuilder,
}

impl StackTable {
    pub(crate) fn intern(&mut self, parent: Option<StackId>, frame: FrameId) -> Option<StackId> {
        let node = Node { parent, frame };
        let hash = self.hasher.hash_one(node);
        if let Some(&id) = self.index.find(hash, |&id| self.nodes[id.row()] == node) {
            return Some(id);
        }
        let id = StackId::from_row(self.nodes.len())?;
        let depth = parent.map_or(0, |parent| self.depths[parent.row()]).checked_add(1)?;
        self.nodes.push(node);
        self.depths.push(depth);
        let Self { nodes, index, hasher, .. } = self;
        index.insert_unique(hash, id, |&id| hasher.hash_one(nodes[id.row()]));
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
        self.depths[id.row()]
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
