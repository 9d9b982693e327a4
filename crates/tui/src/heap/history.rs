//! The positions that were visited before.

use super::HeapPosition;
use super::tree::HeapTree;

/// The number of positions remembered to go back to.
const MOST_PAST: usize = 1_000;

/// The number of remembered positions that keep their trees: unfolded trees of large heaps take memory.
const MOST_TREES: usize = 50;

/// A position to return to.
#[derive(Debug)]
pub(super) struct Visited {
    pub(super) position: HeapPosition,
    /// Its tree, if it has one and was visited recently.
    pub(super) tree: Option<HeapTree>,
}

/// The positions to go back and forward to, the nearest ones last.
#[derive(Debug, Default)]
pub(super) struct History {
    past: Vec<Visited>,
    future: Vec<Visited>,
}

impl History {
    /// Remembers the position that is left for a new one.
    pub(super) fn push(&mut self, left: Visited) {
        self.past.push(left);
        if self.past.len() > MOST_PAST {
            self.past.remove(0);
        }
        if let Some(long_past) = self.past.len().checked_sub(MOST_TREES + 1) {
            self.past[long_past].tree = None;
        }
        self.future.clear();
    }

    pub(super) fn pop(&mut self, forward: bool) -> Option<Visited> {
        if forward { self.future.pop() } else { self.past.pop() }
    }

    /// Remembers the position that is left by going back or forward.
    pub(super) fn turn(&mut self, forward: bool, left: Visited) {
        if forward { self.past.push(left) } else { self.future.push(left) }
    }
}
