//! The limits of a walk, which depend on the size of the memory but not on its contents.
//!
//! In an intact heap, each word leads to at most one thing, and each string, row and part of an expression has its own memory.
//! Damaged memory can refer to the same memory again and again. So the work for each word is counted, and the walk is given up
//! before its lists outgrow the memory.

use borehole_heap::{HeapSink, NodeId, StringId};

use super::{HeapWalker, NodeLink, VisitKind, WalkTask};

/// The maximum number of nodes for each word of memory, far more than real heaps have.
const NODES_A_WORD: u64 = 2;

/// The maximum number of other things for each word: edges outside of the tree, parts of expressions, names of properties,
/// damage.
const MEETINGS_A_WORD: u64 = 2;

/// Values on the work list have 16 bytes each, or are part of something larger.
const BYTES_OF_OPEN: u64 = 16;

/// The length up to which lists may always grow: a single class adds a dozen tasks.
const LEAST_OPEN: usize = 1 << 10;

/// The number of bytes of scanned memory, or of text that is read, that count as one meeting.
const BYTES_OF_MEETING: u64 = 64;

/// The number of bytes of text that is kept, which count as one meeting: all text together takes at most four times the memory.
const BYTES_OF_TEXT: u64 = 16;

/// The remaining budget of a walk; it is given up when any part reaches 0.
#[derive(Clone, Copy, Debug)]
pub(super) struct WalkBudget {
    pub(super) nodes_left: u64,
    meetings_left: u64,
    most_open: usize,
    pub(super) is_exceeded: bool,
}

impl WalkBudget {
    pub(super) fn of(held_bytes: u64) -> Self {
        let words = held_bytes / 8;
        let open = usize::try_from(held_bytes / BYTES_OF_OPEN).unwrap_or(usize::MAX);
        Self {
            nodes_left: (words * NODES_A_WORD).min(u64::from(u32::MAX - 1)),
            meetings_left: words * MEETINGS_A_WORD,
            most_open: open.max(LEAST_OPEN),
            is_exceeded: false,
        }
    }

    #[inline]
    pub(super) fn meet(&mut self, meetings: u64) {
        self.meetings_left = self.meetings_left.saturating_sub(meetings);
        self.is_exceeded |= self.meetings_left == 0;
    }

    /// Counts a text that is kept.
    #[inline]
    pub(super) fn meet_text(&mut self, bytes: usize) {
        self.meet(bytes as u64 / BYTES_OF_TEXT);
    }

    /// Counts a text that is read, or scanned memory.
    #[inline]
    pub(super) fn meet_bytes(&mut self, bytes: usize) {
        self.meet(bytes as u64 / BYTES_OF_MEETING);
    }

    #[inline]
    pub(super) fn may_grow(&mut self, length: usize) -> bool {
        let may = length < self.most_open;
        self.is_exceeded |= !may;
        may
    }
}

impl<S: HeapSink> HeapWalker<'_, S> {
    /// Whether the walk has exceeded its limits.
    #[inline]
    pub(crate) fn is_given_up(&self) -> bool {
        self.graph.limits.is_exceeded || self.graph.limits.nodes_left == 0
    }

    /// The maximum number of things that may be listed, each of which becomes a node.
    pub(crate) fn most_listed(&self) -> usize {
        let WalkBudget { nodes_left, most_open, .. } = self.graph.limits;
        usize::try_from(nodes_left).unwrap_or(most_open).min(most_open)
    }

    /// Schedules a visit of `address`, unless it is null.
    pub(crate) fn later(&mut self, link: NodeLink, kind: VisitKind, address: u64) {
        if address != 0 && self.graph.limits.may_grow(self.pending.tasks.len()) {
            self.pending.tasks.push(WalkTask::Visit { link, kind, address });
        }
    }

    /// Schedules visits of the parts of `parent` in this order, except null addresses.
    pub(super) fn parts_later(&mut self, parent: NodeId, parts: &[(StringId, VisitKind, u64)]) {
        for &(name, kind, address) in parts.iter().rev() {
            self.later(NodeLink::strong(parent, name), kind, address);
        }
    }
}
