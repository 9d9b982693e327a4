//! Computes the memory that would be freed without some nodes.

use hashbrown::HashSet;

use super::merged::MergedNodes;
use super::{Follow, memory};
use crate::graph::{Graph, children};
use crate::sink::NodeId;

/// The nodes and memory that would be freed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Freed {
    /// The number of nodes; nodes that share memory count as one.
    pub nodes: u64,
    /// The bytes of their memory.
    pub bytes: u64,
}

/// Computes what would be freed without all of `gone` at once: these nodes, and everything reached only through them.
#[doc = crate::doc_graph::graph_example!(
    r#"use borehole_heap::retention::{Follow, freed_without};

let freed = freed_without(&graph, Follow::default(), &[object]);
assert_eq!((freed.nodes, freed.bytes), (2, 4152));"#
)]
#[must_use]
pub fn freed_without(graph: &impl Graph, follow: Follow, gone: &[NodeId]) -> Freed {
    let merged = MergedNodes::of(graph);
    let mut all = reached(graph, &merged, follow, &[]);
    let kept = reached(graph, &merged, follow, gone);
    for (vertex, kept) in all.iter_mut().zip(kept) {
        *vertex *= 1 - kept;
    }
    let bytes = memory::shallow(graph, memory::CountedMemory::of(graph), &merged, &all, 2);
    let nodes = all.iter().map(|&freed| u64::from(freed)).sum();
    Freed { nodes, bytes: bytes[1] }
}

/// 1 for each node that is reached without passing `without`, 0 for the others.
fn reached(graph: &impl Graph, merged: &MergedNodes, follow: Follow, without: &[NodeId]) -> Vec<u32> {
    let count = graph.counts().nodes;
    let mut reached = vec![0; count];
    let without: HashSet<u32> = without.iter().map(|node| merged.representative(node.0)).collect();
    let mut ahead: Vec<Option<NodeId>> = vec![None];
    while let Some(parent) = ahead.pop() {
        for child in children(graph, parent) {
            let node = merged.representative(child.node.0);
            let is_new = reached[node as usize] == 0 && follow.follows(child.strength);
            if is_new && !without.contains(&node) {
                reached[node as usize] = 1;
                ahead.extend(merged.group(node).map(|node| Some(NodeId(node))));
            }
        }
    }
    reached
}
