//! How far a walk goes at most: by the memory that there is, whatever stands in it.
//!
//! In a heap as PHP leaves it, each word leads to one thing at most, and each string, row and part of an expression has
//! memory of its own. Damaged memory can refer to the same memory again and again: what a walk does for each word is
//! counted, and it is given up before the lists that it keeps outgrow the memory.

use borehole_heap::HeapSink;

use super::{Kind, Link, Task, Walker};

/// How many nodes there may be for each word of memory: far more than real heaps have.
const NODES_A_WORD: u64 = 2;

/// Beside nodes, how often anything else may be met for each word: edges that are not of the tree, parts of expressions,
/// names of properties, damage.
const MEETINGS_A_WORD: u64 = 2;

/// Values that can be open have 16 bytes each, or lie in something larger.
const BYTES_OF_OPEN: u64 = 16;

/// Memory this small need not be counted: a class alone opens a dozen things.
const LEAST_OPEN: usize = 1 << 10;

/// So many bytes of text, or of memory that is looked through, count as one meeting.
const BYTES_OF_MEETING: u64 = 64;

/// What is left of a walk before it is given up: at 0 of anything.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) nodes_left: u64,
    meetings_left: u64,
    most_open: usize,
    is_exceeded: bool,
}

impl Limits {
    /// For a walk of so many bytes of memory.
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

    /// Counts `meetings`.
    #[inline]
    pub(super) fn meet(&mut self, meetings: u64) {
        self.meetings_left = self.meetings_left.saturating_sub(meetings);
        self.is_exceeded |= self.meetings_left == 0;
    }

    /// Counts a text, or memory that is looked through.
    #[inline]
    pub(super) fn meet_bytes(&mut self, bytes: usize) {
        self.meet(bytes as u64 / BYTES_OF_MEETING);
    }

    /// Whether a list may grow that is so long.
    #[inline]
    pub(super) fn may_grow(&mut self, length: usize) -> bool {
        let may = length < self.most_open;
        self.is_exceeded |= !may;
        may
    }
}

impl<S: HeapSink> Walker<'_, S> {
    /// Whether there is more than the memory can hold.
    #[inline]
    pub(crate) fn is_given_up(&self) -> bool {
        self.limits.is_exceeded || self.limits.nodes_left == 0
    }

    /// How many things may be listed, of which each becomes a node.
    pub(crate) fn most_listed(&self) -> usize {
        let Limits { nodes_left, most_open, .. } = self.limits;
        usize::try_from(nodes_left).unwrap_or(most_open).min(most_open)
    }

    /// Says that there is more than was listed.
    pub(crate) fn give_up(&mut self) {
        self.limits.is_exceeded = true;
    }

    /// Goes to `address` later, unless it is null.
    pub(crate) fn later(&mut self, link: Link, kind: Kind, address: u64) {
        if address != 0 && self.limits.may_grow(self.work.len()) {
            self.work.push(Task::Visit { link, kind, address });
        }
    }

    /// Goes to `address`, of which it is not known what is there, when all that is known has been walked.
    pub(crate) fn later_unknown(&mut self, link: Link, address: u64) {
        if address != 0 && self.limits.may_grow(self.unknown.len()) {
            self.unknown.push((link, address));
        }
    }

    /// Counts memory that is looked through for addresses.
    pub(crate) fn look_through(&mut self, bytes: usize) {
        self.limits.meet_bytes(bytes);
    }
}
