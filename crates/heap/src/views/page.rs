//! The data of a page about a heap.

use super::{BlockLimits, Blocks, ClassView, Heap, classes};
use crate::graph::{Counts, Graph};

/// A heap reduced to the size of a page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeapPage {
    /// The number of items of each kind.
    pub counts: Counts,
    /// The total bytes of all reached nodes.
    pub total_bytes: u64,
    /// The time of the snapshot, in ISO 8601; empty if unknown.
    pub created: String,
    /// The dominator tree as blocks.
    pub blocks: Blocks,
    /// All classes that have objects.
    pub classes: Vec<ClassView>,
}

impl HeapPage {
    /// Computes the page of a heap.
    #[must_use]
    pub fn new<G: Graph + ?Sized>(heap: &Heap<'_, G>, limits: BlockLimits) -> Self {
        Self {
            counts: heap.graph().counts(),
            total_bytes: heap.retention().total(),
            created: heap.graph().created().to_owned(),
            blocks: Blocks::of(heap, limits),
            classes: classes(heap),
        }
    }
}
