//! The nodes with the largest retained sizes.

use super::Heap;
use super::fields::is_part;
use crate::largest::Largest;
use crate::names::NodeType;
use crate::sink::NodeId;

/// The nodes with the largest retained sizes, at most `limit`, in descending order, without the engine's parts of
/// objects and arrays.
#[doc = crate::doc_graph::graph_example!(
    r#"use borehole_heap::retention::Follow;
use borehole_heap::views::{Heap, largest};

assert_eq!(largest(&Heap::new(&graph, Follow::default()), 1), [object]);"#
)]
#[must_use]
pub fn largest(heap: &Heap<'_>, limit: usize) -> Vec<NodeId> {
    let mut found = Largest::new(limit);
    for node in heap.retention().nodes() {
        let node_type = heap.graph().node_type(node);
        if !is_part(node_type) && node_type != NodeType::ARRAY_ELEMENT {
            found.push(heap.retention().retained(node), node);
        }
    }
    found.sorted().into_iter().map(|(_, node)| node).collect()
}
