//! The depth-first walk that the algorithms for dominators and cycles need.

use std::ops::Range;

use hashbrown::HashSet;

use super::Follow;
use super::merged::MergedNodes;
use crate::graph::{Child, Graph};
use crate::sink::NodeId;

/// Replaces the lowest vertex that a vertex leads back to, once its cycle is known.
const CLOSED: u32 = u32::MAX;

/// A cycle: nodes of which each has a path to every other one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Cycle {
    /// The nodes, ascending; a node that refers to itself may be alone.
    pub nodes: Vec<u32>,
}

/// The result of a walk. Vertices are nodes in the order in which the walk reached them, after vertex 0, which
/// represents the roots.
#[derive(Debug, Default)]
pub(super) struct GraphWalk {
    /// The vertex of each node; 0 if it has none.
    pub(super) vertices: Vec<u32>,
    /// The node of each vertex.
    pub(super) nodes: Vec<u32>,
    /// The vertex from which the walk reached each vertex.
    pub(super) parents: Vec<u32>,
    /// All other references, as target and source vertex.
    pub(super) crossings: Vec<(u32, u32)>,
    /// The cycles, by their first node.
    pub(super) cycles: Vec<Cycle>,
}

/// A vertex whose references are being followed.
struct VertexVisit {
    vertex: u32,
    /// The node whose rows are being read: each node of a merged group in turn.
    node: u32,
    rows: Range<usize>,
}

/// State that is needed only during the walk.
struct GraphWalker<'a, G, F> {
    graph: &'a G,
    merged: &'a MergedNodes,
    follows: F,
    walk: GraphWalk,
    path: Vec<VertexVisit>,
    /// The smallest vertex that each vertex leads back to.
    lowest: Vec<u32>,
    /// The vertices whose cycles are not known yet.
    open: Vec<u32>,
    /// The vertices that refer to themselves.
    selfish: HashSet<u32>,
}

/// The references that a walk follows.
#[derive(Debug)]
pub(super) struct Following {
    pub(super) follow: Follow,
    /// Nodes that the followed references do not reach: all references to them are followed, so that their memory
    /// belongs to some node.
    hung: HashSet<u32>,
}

impl Following {
    pub(super) fn new(follow: Follow) -> Self {
        Self { follow, hung: HashSet::new() }
    }

    fn follows(&self, child: &Child) -> bool {
        self.follow.follows(child.strength) || self.is_hung(child.node.0)
    }

    /// Whether there is any such node.
    pub(super) fn hangs(&self) -> bool {
        !self.hung.is_empty()
    }

    /// Whether `node` is reached only by references that are followed for its sake.
    pub(super) fn is_hung(&self, node: u32) -> bool {
        !self.hung.is_empty() && self.hung.contains(&node)
    }

    /// Adds the nodes that a walk has not reached; returns whether there are any.
    fn hang(&mut self, walk: &GraphWalk, merged: &MergedNodes) -> bool {
        for (&vertex, node) in walk.vertices.iter().zip(0..) {
            if vertex == 0 && walk.vertices[merged.representative(node) as usize] == 0 {
                self.hung.insert(node);
            }
        }
        !self.hung.is_empty()
    }
}

impl GraphWalk {
    /// Walks over all reached nodes.
    pub(super) fn over(graph: &impl Graph, merged: &MergedNodes, following: &mut Following) -> Self {
        let walk = walk(graph, merged, |child: &Child| following.follows(child));
        if following.hung.is_empty() && following.hang(&walk, merged) {
            return self::walk(graph, merged, |child: &Child| following.follows(child));
        }
        walk
    }
}

fn walk<G: Graph>(graph: &G, merged: &MergedNodes, follows: impl Fn(&Child) -> bool) -> GraphWalk {
    let count = graph.counts().nodes;
    let mut walk = GraphWalk { vertices: vec![0; count], ..GraphWalk::default() };
    walk.nodes.reserve(count + 1);
    walk.parents.reserve(count + 1);
    let lowest = Vec::with_capacity(count + 1);
    let (path, open, selfish) = (Vec::new(), Vec::new(), HashSet::new());
    let mut walker = GraphWalker { graph, merged, follows, walk, path, lowest, open, selfish };
    walker.enter(u32::MAX, 0, graph.children(None));
    while let Some(visit) = walker.path.last_mut() {
        let (vertex, node) = (visit.vertex, visit.node);
        match visit.rows.next() {
            Some(row) => {
                if let Some(child) = graph.child(row).filter(|child| (walker.follows)(child)) {
                    walker.refer(vertex, child.node);
                }
            }
            None if walker.turn(vertex, node) => {}
            None => walker.leave(vertex),
        }
    }
    walker.walk.cycles.sort_unstable_by_key(|cycle| cycle.nodes[0]);
    walker.walk
}

impl<G: Graph, F: Fn(&Child) -> bool> GraphWalker<'_, G, F> {
    fn enter(&mut self, node: u32, parent: u32, rows: Range<usize>) {
        let vertex = u32::try_from(self.walk.nodes.len()).unwrap_or(CLOSED);
        if let Some(entry) = self.walk.vertices.get_mut(node as usize) {
            *entry = vertex;
        }
        self.walk.nodes.push(node);
        self.walk.parents.push(parent);
        self.lowest.push(vertex);
        self.open.push(vertex);
        self.path.push(VertexVisit { vertex, node, rows });
    }

    /// Follows a reference.
    #[inline]
    fn refer(&mut self, from: u32, to: NodeId) {
        let node = self.merged.representative(to.0);
        let vertex = self.walk.vertices[node as usize];
        if vertex == 0 {
            return self.enter(node, from, self.graph.children(Some(NodeId(node))));
        }
        if vertex == from {
            self.selfish.insert(vertex);
            return;
        }
        if self.walk.parents[vertex as usize] != from {
            self.walk.crossings.push((vertex, from));
        }
        if self.lowest[vertex as usize] != CLOSED {
            let lowest = &mut self.lowest[from as usize];
            *lowest = (*lowest).min(vertex);
        }
    }

    /// Continues with the next node of the merged group; returns whether there is one.
    fn turn(&mut self, vertex: u32, node: u32) -> bool {
        if vertex == 0 || !self.merged.contains(node) {
            return false;
        }
        let next = self.merged.next(node);
        if next == self.merged.representative(node) {
            return false;
        }
        let rows = self.graph.children(Some(NodeId(next)));
        self.path.pop();
        self.path.push(VertexVisit { vertex, node: next, rows });
        true
    }

    fn leave(&mut self, vertex: u32) {
        self.path.pop();
        let lowest = self.lowest[vertex as usize];
        if let Some(above) = self.path.last() {
            let above = &mut self.lowest[above.vertex as usize];
            *above = (*above).min(lowest);
        }
        if lowest == vertex {
            self.close(vertex);
        }
    }

    /// Closes a cycle: a vertex that leads back to none before it, and all that lead back to it.
    fn close(&mut self, vertex: u32) {
        if self.open.last() == Some(&vertex) && !self.selfish.contains(&vertex) {
            self.lowest[vertex as usize] = CLOSED;
            self.open.pop();
            return;
        }
        let from = self.open.iter().rposition(|&open| open == vertex).unwrap_or_default();
        let mut nodes = self.open.split_off(from);
        for one in &mut nodes {
            self.lowest[*one as usize] = CLOSED;
            *one = self.walk.nodes[*one as usize];
        }
        nodes.sort_unstable();
        self.walk.cycles.push(Cycle { nodes });
    }
}
