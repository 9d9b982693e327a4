//! A heap as far as it is known soon: sums over its memory, which need neither a walk nor retained sizes.

use crate::graph::{Graph, GraphCounts, MemoryTotal};
use crate::names::LocationType;
use crate::totals::{TotalsScope, totals};

/// A heap before its retained sizes are known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct HeapOutline {
    /// The number of items of each kind.
    pub counts: GraphCounts,
    /// The time of the snapshot, in ISO 8601; empty if unknown.
    pub created: String,
    /// The memory of each type of value, the largest first.
    pub types: Vec<MemoryTotal>,
    /// The part of it that is objects, by class, the largest first.
    pub classes: Vec<MemoryTotal>,
    /// The index of the type of objects in `types`; `None` if there are none.
    pub objects: Option<usize>,
}

impl HeapOutline {
    /// Sums up the memory of a graph: PHP's own, or all of it if the graph does not state which that is.
    #[doc = crate::doc_graph::graph_example!(
        r#"use borehole_heap::views::HeapOutline;

let outline = HeapOutline::of(&graph);
assert_eq!((outline.classes[0].count, outline.classes[0].memory_usage), (1, 56));"#
    )]
    #[must_use]
    pub fn of(graph: &dyn Graph) -> Self {
        let stated = graph.totals().cloned();
        let own = stated.unwrap_or_else(|| totals(&graph, TotalsScope::OwnMemory));
        let sums = if own.location_types.is_empty() { totals(&graph, TotalsScope::Everything) } else { own };
        let name = graph.location_type_name(LocationType::OBJECT);
        Self {
            counts: graph.counts(),
            created: graph.created().to_owned(),
            objects: sums.location_types.iter().position(|total| total.name == name),
            types: sums.location_types,
            classes: sums.classes,
        }
    }
}
