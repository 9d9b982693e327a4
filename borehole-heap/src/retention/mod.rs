//! What keeps what alive: dominators, retained sizes, cycles.
//!
//! A node dominates another when every way from the roots to that one passes through it: were it gone, the other would be freed.
//! What a node retains is its own memory and that of all it dominates, exactly, with cycles as without.
//!
//! Nodes that stand for the same memory count as one, whose references are those of all of them. Memory counts when it lies in
//! PHP's own, with what its block has beyond it, and once; all does where the graph does not say which memory is PHP's own.
//!
//! Everything is linear in nodes and references, or nearly (dominators: times the logarithm of their ratio), and nothing
//! recurses: a list of ten million nodes is as good as a tree.

mod dominators;
mod freed;
mod memory;
mod merged;
mod shortest;
mod tree;
mod walk;

use crate::graph::Graph;
use crate::names::Strength;
use crate::sink::{Location, NodeId};

pub use freed::{Freed, freed_without};
pub use shortest::ShortestPaths;
pub use tree::DominatorTree;
pub use walk::Cycle;

use memory::Counted;
use merged::Merged;
use walk::{Following, Walk};

/// Which references keep their target alive. Strong ones always do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Follow {
    /// The engine's own: an object's class, a function's instructions.
    pub structural: bool,
    /// Those that count for nothing: the table of objects, weak references.
    pub weak: bool,
}

impl Default for Follow {
    /// Structural ones, not weak ones.
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

/// What each node of a graph retains, and what dominates it.
///
/// A node that is reached by references alone that are not followed hangs where those lead to it, so that its memory is somebody's;
/// one that nothing leads to, as damaged graphs have them, retains nothing.
#[derive(Debug)]
pub struct Retention {
    following: Following,
    merged: Merged,
    /// The vertex of each node; 0 for one that is not reached, or that is merged into another.
    vertices: Vec<u32>,
    /// The node of each vertex. Vertex 0 is what holds the roots; a vertex has a larger number than its dominator.
    nodes: Vec<u32>,
    dominators: Vec<u32>,
    retained: Vec<u64>,
    counted: Counted,
    cycles: Vec<Cycle>,
}

impl Retention {
    /// Of every node of `graph`.
    #[must_use]
    pub fn of(graph: &impl Graph, follow: Follow) -> Self {
        Self::with(graph, Following::new(follow), Merged::of(graph))
    }

    /// The same where the nodes of each cycle are one as well: what a cycle retains as a whole, whoever refers to a part of it.
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

    fn with(graph: &impl Graph, mut following: Following, merged: Merged) -> Self {
        let walk = Walk::over(graph, &merged, &mut following);
        let Walk { vertices, nodes, parents, crossings, cycles } = walk;
        let dominators = dominators::immediate(parents, crossings);
        let counted = Counted::of(graph);
        let mut retained = memory::own(graph, counted, &merged, &vertices, nodes.len());
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

    /// Whether anything leads to `node`.
    #[must_use]
    pub fn is_reached(&self, node: NodeId) -> bool {
        self.vertex(node).is_some()
    }

    /// Whether references that keep nodes alive lead to `node`: what is reached without is garbage.
    #[must_use]
    pub fn is_held(&self, node: NodeId) -> bool {
        self.is_reached(node) && !self.following.is_hung(self.merged.representative(node.0))
    }

    /// Whether there are nodes that are not held.
    pub(crate) fn has_garbage(&self) -> bool {
        self.following.hangs()
    }

    /// The node that stands for all that share `node`'s memory, itself where it is alone with it.
    #[must_use]
    pub fn representative(&self, node: NodeId) -> NodeId {
        NodeId(self.merged.representative(node.0))
    }

    /// How many bytes would be freed if `node` were gone: 0 for one that nothing leads to.
    #[must_use]
    pub fn retained(&self, node: NodeId) -> u64 {
        self.vertex(node).map_or(0, |vertex| self.retained[vertex])
    }

    /// The bytes of the blocks that `node` itself stands for, those in PHP's own memory; all where the graph does not say which
    /// those are.
    #[must_use]
    pub fn own(&self, graph: &impl Graph, node: NodeId) -> u64 {
        self.counted.of_node(graph, node)
    }

    /// Whether the memory of `location` counts.
    pub(crate) fn counts(&self, location: &Location) -> bool {
        self.counted.counts(location)
    }

    /// The bytes of everything that is reached.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.retained.first().copied().unwrap_or_default()
    }

    /// The nearest node without which `node` would be gone; `None` where no single one is, or nothing leads to it.
    #[must_use]
    pub fn dominator(&self, node: NodeId) -> Option<NodeId> {
        let dominator = self.dominators[self.vertex(node)?];
        (dominator != 0).then(|| NodeId(self.nodes[dominator as usize]))
    }

    /// The nodes that are reached, dominators before what they dominate; of those that share memory, one.
    pub fn nodes(&self) -> impl Iterator<Item = NodeId> {
        self.nodes.iter().skip(1).map(|&node| NodeId(node))
    }

    /// The sets of nodes that hold each other, in order of their first nodes.
    #[must_use]
    pub fn cycles(&self) -> &[Cycle] {
        &self.cycles
    }

    /// Whether one node of the cycle dominates the others: then the cycle retains what that node does.
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
