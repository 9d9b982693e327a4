//! What a page shows of a heap.

use super::{BlockLimits, Blocks, ClassView, Heap, classes};
use crate::graph::{Counts, Graph};

/// A heap, small enough for a page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeapPage {
    /// How much of each sort the heap has.
    pub counts: Counts,
    /// The bytes of everything that is reached.
    pub total_bytes: u64,
    /// When it was taken, as ISO 8601 says it; empty where unknown.
    pub created: String,
    /// What holds what.
    pub blocks: Blocks,
    /// All classes of which there are objects.
    pub classes: Vec<ClassView>,
}

impl HeapPage {
    /// That of a heap.
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
