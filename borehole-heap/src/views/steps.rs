//! References: to a node, from it, and on the way to it.

use super::Heap;
use crate::graph::{Child, Graph, TreeParents};
use crate::names::Strength;
use crate::retention::ShortestPaths;
use crate::sink::NodeId;

/// A reference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// What refers; `None`: the graph itself, to a root.
    pub from: Option<NodeId>,
    /// What is referred to.
    pub to: NodeId,
    /// By what name.
    pub link: Vec<u8>,
    /// Whether it keeps what it refers to alive.
    pub strength: Strength,
    /// Whether the walk came there by it.
    pub is_tree: bool,
}

/// A step on the way from a root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Where it leads.
    pub node: NodeId,
    /// By what name.
    pub link: Vec<u8>,
    /// Whether the reference keeps it alive.
    pub strength: Strength,
}

impl<G: Graph + ?Sized> Heap<'_, G> {
    /// What `node` refers to, in the order of the walk; of `None`, the roots.
    pub fn references(&self, node: Option<NodeId>) -> impl Iterator<Item = Reference> {
        self.graph().children(node).filter_map(move |row| self.reference(node, row))
    }

    /// What refers to `node`.
    pub fn referrers(&self, node: NodeId) -> impl Iterator<Item = Reference> {
        self.parents().referrers(node).filter_map(|(from, row)| self.reference(from, row))
    }

    fn reference(&self, from: Option<NodeId>, row: usize) -> Option<Reference> {
        let child = self.graph().child(row)?;
        let link = self.graph().string(child.link).to_vec();
        Some(Reference { from, to: child.node, link, strength: child.strength, is_tree: child.is_tree })
    }

    /// The way by which the walk came to `node`, from its root.
    #[must_use]
    pub fn way(&self, node: NodeId) -> Vec<Step> {
        let tree: &TreeParents = self.tree();
        let link = |node| tree.link(node).map_or(&[][..], |link| self.graph().string(link)).to_vec();
        let step = |node| Step { node, link: link(node), strength: tree.strength(node) };
        tree.path(node).into_iter().map(step).collect()
    }

    /// A way of the fewest references to `node`; none where nothing leads to it.
    #[must_use]
    pub fn shortest_way(&self, node: NodeId) -> Vec<Step> {
        let rows = ShortestPaths::of(&self.graph(), self.follow()).rows(node);
        let children = rows.into_iter().filter_map(|row| self.graph().child(row));
        let link = |child: &Child| self.graph().string(child.link).to_vec();
        children
            .map(|child| Step { node: child.node, link: link(&child), strength: child.strength })
            .collect()
    }
}
