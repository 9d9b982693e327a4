//! The references to each node, computed on request because the graph's rows are sorted by parent.

use super::Graph;
use crate::names::Strength;
use crate::sink::{NodeId, StringId};

/// The tree reference to each node: the one by which the walk first reached it.
#[doc = crate::doc_graph::graph_example!(
    r#"use borehole_heap::TreeParents;

let tree = TreeParents::of(&graph);
assert_eq!((tree.parent(string), tree.parent(object)), (Some(object), None));
assert_eq!(tree.path(string), [object, string]);"#
)]
#[derive(Debug)]
pub struct TreeParents {
    /// Parent and name. The maximum number means no parent.
    of: Vec<(u32, StringId)>,
    strengths: Vec<Strength>,
}

impl TreeParents {
    /// Finds the tree references of `graph`.
    #[must_use]
    pub fn of(graph: &impl Graph) -> Self {
        let mut of = vec![(u32::MAX, StringId(u32::MAX)); graph.counts().nodes];
        let mut strengths = vec![Strength::Strong; of.len()];
        graph.each_reference(&mut |parent, _, child| {
            let place = child.node.0 as usize;
            if let Some(entry) = of.get_mut(place).filter(|_| child.is_tree) {
                *entry = (parent.map_or(u32::MAX, |parent| parent.0), child.link);
                strengths[place] = child.strength;
            }
        });
        Self { of, strengths }
    }

    /// The parent of `node`; `None` for a root.
    #[must_use]
    pub fn parent(&self, node: NodeId) -> Option<NodeId> {
        self.of
            .get(node.0 as usize)
            .filter(|(parent, _)| *parent != u32::MAX)
            .map(|&(parent, _)| NodeId(parent))
    }

    /// The name of the tree reference to `node`; `None` for a node outside the tree.
    #[must_use]
    pub fn link(&self, node: NodeId) -> Option<StringId> {
        self.of.get(node.0 as usize).map(|&(_, link)| link).filter(|link| link.0 != u32::MAX)
    }

    /// Whether the tree reference to `node` keeps it alive; strong for a node outside the tree.
    #[must_use]
    pub fn strength(&self, node: NodeId) -> Strength {
        self.strengths.get(node.0 as usize).copied().unwrap_or(Strength::Strong)
    }

    /// The nodes from the root to `node`. Stops after as many steps as there are nodes, because a damaged tree may have cycles.
    #[must_use]
    pub fn path(&self, node: NodeId) -> Vec<NodeId> {
        let upwards = std::iter::successors(Some(node), |&node| self.parent(node));
        let mut path: Vec<NodeId> = upwards.take(self.of.len()).collect();
        path.reverse();
        path
    }
}

/// All references to each node.
#[doc = crate::doc_graph::graph_example!(
    r#"use borehole_heap::Parents;

let parents = Parents::of(&graph);
assert_eq!(parents.count(string), 1);
assert_eq!(parents.referrer(string, 0).and_then(|(node, _)| node), Some(object));"#
)]
#[derive(Debug)]
pub struct Parents {
    starts: Vec<u32>,
    /// Parent, and row of the reference. The maximum number means no parent.
    referrers: Vec<(u32, u32)>,
}

impl Parents {
    /// Collects the references of `graph`.
    #[must_use]
    pub fn of(graph: &impl Graph) -> Self {
        let count = graph.counts().nodes;
        let mut starts = vec![0_u32; count + 1];
        let mut total = 0_usize;
        for_each(graph, |_, _, child| {
            starts[child.0 as usize] += 1;
            total += 1;
        });
        let mut sum = 0;
        for start in &mut starts {
            sum += *start;
            *start = sum;
        }
        let mut referrers = vec![(u32::MAX, u32::MAX); total];
        for_each(graph, |parent, row, child| {
            let start = &mut starts[child.0 as usize];
            *start -= 1;
            referrers[*start as usize] = (parent.map_or(u32::MAX, |parent| parent.0), row);
        });
        Self { starts, referrers }
    }

    /// The referrers of `node`, with the row of each reference. `None` is the graph itself, which refers to roots.
    pub fn referrers(&self, node: NodeId) -> impl Iterator<Item = (Option<NodeId>, usize)> {
        self.found(node).iter().rev().map(|&entry| referrer(entry))
    }

    /// The number of references to `node`.
    #[must_use]
    pub fn count(&self, node: NodeId) -> usize {
        self.found(node).len()
    }

    /// The referrer of `node` with this index.
    #[must_use]
    pub fn referrer(&self, node: NodeId, place: usize) -> Option<(Option<NodeId>, usize)> {
        self.found(node).iter().rev().nth(place).map(|&entry| referrer(entry))
    }

    fn found(&self, node: NodeId) -> &[(u32, u32)] {
        let start = |entry: usize| self.starts.get(entry).map_or(0, |&start| start as usize);
        let range = start(node.0 as usize)..start((node.0 as usize).saturating_add(1));
        self.referrers.get(range).unwrap_or_default()
    }
}

fn referrer((parent, row): (u32, u32)) -> (Option<NodeId>, usize) {
    ((parent != u32::MAX).then_some(NodeId(parent)), row as usize)
}

fn for_each(graph: &impl Graph, mut see: impl FnMut(Option<NodeId>, u32, NodeId)) {
    let count = graph.counts().nodes;
    graph.each_reference(&mut |parent, row, child| {
        if (child.node.0 as usize) < count {
            see(parent, u32::try_from(row).unwrap_or(u32::MAX), child.node);
        }
    });
}
