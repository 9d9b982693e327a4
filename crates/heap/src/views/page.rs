//! The data of a page about a heap.

use serde::Serialize;

use super::{BlockLimits, ClassView, DominatorBlocks, Heap, classes};
use crate::graph::GraphCounts;

/// A heap reduced to the size of a page.
#[doc = crate::doc_graph::graph_example!(
    r#"use borehole_heap::{retention::Follow, views::{BlockLimits, Heap, HeapPage}};

let page = HeapPage::new(&Heap::new(&graph, Follow::default()), BlockLimits::default());
assert_eq!(page.classes.len(), 1);"#
)]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct HeapPage {
    /// The number of items of each kind.
    pub counts: GraphCounts,
    /// The total bytes of all reached nodes.
    pub total_bytes: u64,
    /// The time of the snapshot, in ISO 8601; empty if unknown.
    pub created: String,
    /// The dominator tree as blocks.
    pub blocks: DominatorBlocks,
    /// All classes that have objects.
    pub classes: Vec<ClassView>,
}

impl HeapPage {
    /// Computes the page of a heap.
    #[must_use]
    pub fn new(heap: &Heap<'_>, limits: BlockLimits) -> Self {
        Self {
            counts: heap.graph().counts(),
            total_bytes: heap.retention().total(),
            created: heap.graph().created().to_owned(),
            blocks: DominatorBlocks::of(heap, limits),
            classes: classes(heap),
        }
    }
}
