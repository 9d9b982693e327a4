//! Retention: dominators, retained sizes and cycles.
//!
//! A node dominates another if every path from the roots to the other passes through it, so that without it the other
//! would be freed. The retained size of a node is its own memory and that of all nodes that it dominates. It is exact,
//! also with cycles.
//!
//! Nodes that represent the same memory count as one node, with the references of all of them. Memory counts once,
//! including the overhead of its block, if it is in PHP's own memory. If the graph does not state which memory is PHP's
//! own, all memory counts.
//!
//! All algorithms are linear in nodes and references, or nearly so (dominators: times the logarithm of their ratio),
//! and none is recursive: a list of ten million nodes is no harder than a tree.

mod dominators;
mod freed;
mod memory;
mod merged;
mod shortest;
mod tree;
mod walk;

use crate::graph::Graph;
use crate::names::Strength;
use crate::sink::{MemoryLocation, NodeId};

pub use freed::{Freed, freed_without};
pub use shortest::ShortestPaths;
pub use tree::DominatorTree;
pub use walk::Cycle;

use memory::CountedMemory;
use merged::MergedNodes;
use walk::{Following, GraphWalk};

/// The references that keep their target alive, in addition to strong ones.
#[doc = crate::doc_graph::graph_example!(
    r#"use borehole_heap::retention::{Follow, Retention};

let strong = Follow { structural: false, weak: false };
assert!(Retention::of(&graph, strong).is_held(string));"#
)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Follow {
    /// Structural references of the engine: an object's class, a function's instructions.
    pub structural: bool,
    /// Weak references: the table of objects, weak references of PHP.
    pub weak: bool,
}

impl Default for Follow {
    /// Includes structural references, but not weak ones.
    fn default() -> Self {
        Self { structural: true, weak: false }
    }
}

impl Follow {
    #[inline]
    pub(crate) const fn follows(self, strength: Strength) -> bool {
        match strength {
            Strength::Strong => true,
            Strength::Structural => self.structural,
            Strength::Weak => self.weak,
        }
    }
}

/// The retained size and the dominator of each node of a graph.
///
/// A node that is reached only by references that are not followed is attached where these lead to it, so that its
/// memory belongs to some node. A node without any references to it, as in damaged graphs, retains nothing.
#[doc = crate::doc_graph::graph_example!(
    r#"use borehole_heap::retention::{Follow, Retention};

let retention = Retention::of(&graph, Follow::default());
assert!(retention.retained(object) > retention.retained(string));
assert_eq!(retention.dominator(string), Some(object));
assert!(retention.cycles().is_empty());"#
)]
#[derive(Debug)]
pub struct Retention {
    following: Following,
    merged: MergedNodes,
    /// The vertex of each node; 0 if it is not reached, or is merged into another node.
    vertices: Vec<u32>,
    /// The node of each vertex. Vertex 0 represents the roots; a vertex has a larger number than its dominator.
    nodes: Vec<u32>,
    dominators: Vec<u32>,
    retained: Vec<u64>,
    counted: CountedMemory,
    cycles: Vec<Cycle>,
}

impl Retention {
    /// Computes the retention of `graph`.
    #[must_use]
    pub fn of(graph: &impl Graph, follow: Follow) -> Self {
        Self::with(graph, Following::new(follow), MergedNodes::of(graph))
    }

    /// Like [`Self::of`], with the nodes of each cycle merged too: gives the retained size of a cycle as a whole, even
    /// if there are references to several of its nodes.
    #[must_use]
    pub fn with_whole_cycles(self, graph: &impl Graph) -> Self {
        let mut merged = self.merged;
        for cycle in &self.cycles {
            for pair in cycle.nodes.windows(2) {
                merged.merge(pair[0], pair[1]);
            }
        }
        Self::with(graph, self.following, merged)
    }

    fn with(graph: &impl Graph, mut following: Following, merged: MergedNodes) -> Self {
        let walk = GraphWalk::over(graph, &merged, &mut following);
        let GraphWalk { vertices, nodes, parents, crossings, cycles } = walk;
        let dominators = dominators::immediate(parents, crossings);
        let counted = CountedMemory::of(graph);
        let mut retained = memory::shallow(graph, counted, &merged, &vertices, nodes.len());
        for vertex in (1..nodes.len()).rev() {
            let bytes = retained[vertex];
            let above = &mut retained[dominators[vertex] as usize];
            *above = above.saturating_add(bytes);
        }
        Self { following, merged, vertices, nodes, dominators, retained, counted, cycles }
    }

    fn vertex(&self, node: NodeId) -> Option<usize> {
        let node = self.merged.representative(node.0);
        self.vertices.get(node as usize).filter(|&&vertex| vertex != 0).map(|&vertex| vertex as usize)
    }

    /// Whether `node` is reached by any references.
    #[must_use]
    pub fn is_reached(&self, node: NodeId) -> bool {
        self.vertex(node).is_some()
    }

    /// Whether `node` is reached by references that keep nodes alive. A node that is reached but not held is garbage.
    #[must_use]
    pub fn is_held(&self, node: NodeId) -> bool {
        self.is_reached(node) && !self.following.is_hung(self.merged.representative(node.0))
    }

    /// Whether there are nodes that are not held.
    pub(crate) fn has_garbage(&self) -> bool {
        self.following.hangs()
    }

    /// The representative of all nodes that share the memory of `node`; itself if there is no other one.
    #[must_use]
    pub fn representative(&self, node: NodeId) -> NodeId {
        NodeId(self.merged.representative(node.0))
    }

    /// The retained size: the bytes that would be freed without `node`. 0 if it is not reached.
    #[must_use]
    pub fn retained(&self, node: NodeId) -> u64 {
        self.vertex(node).map_or(0, |vertex| self.retained[vertex])
    }

    /// The shallow size: the bytes of the blocks of `node` in PHP's own memory, or in all memory if the graph does not
    /// state which is PHP's own.
    #[must_use]
    pub fn shallow(&self, graph: &impl Graph, node: NodeId) -> u64 {
        self.counted.of_node(graph, node)
    }

    /// Whether the memory of `location` counts.
    pub(crate) fn counts(&self, location: &MemoryLocation) -> bool {
        self.counted.counts(location)
    }

    /// The total bytes of all reached nodes.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.retained.first().copied().unwrap_or_default()
    }

    /// The immediate dominator; `None` if only the roots dominate `node`, or it is not reached.
    #[must_use]
    pub fn dominator(&self, node: NodeId) -> Option<NodeId> {
        let dominator = self.dominators[self.vertex(node)?];
        (dominator != 0).then(|| NodeId(self.nodes[dominator as usize]))
    }

    /// Iterates over the reached nodes, dominators before the nodes that they dominate; of nodes that share memory, over one.
    pub fn nodes(&self) -> impl Iterator<Item = NodeId> {
        self.nodes.iter().skip(1).map(|&node| NodeId(node))
    }

    /// The sets of nodes that hold each other, in order of their first nodes.
    #[must_use]
    pub fn cycles(&self) -> &[Cycle] {
        &self.cycles
    }

    /// Whether one node of the cycle dominates the others, so that the retained size of the cycle is that of this node.
    #[must_use]
    pub fn head(&self, cycle: &Cycle) -> Option<NodeId> {
        let mut outside = cycle.nodes.iter().filter(|&&node| {
            let dominator = self.dominator(NodeId(node));
            dominator.is_none_or(|dominator| cycle.nodes.binary_search(&dominator.0).is_err())
        });
        match (outside.next(), outside.next()) {
            (Some(&head), None) => Some(NodeId(head)),
            _ => None,
        }
    }
}
