//! References to a node, from it, and on the path to it.

use serde::Serialize;

use super::Heap;
use crate::graph::{Child, TreeParents};
use crate::names::Strength;
use crate::retention::ShortestPaths;
use crate::serialized;
use crate::sink::NodeId;

/// A reference.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct NodeReference {
    /// The referrer; `None`: the graph itself, which refers to a root.
    #[serde(rename = "from_node_id")]
    pub from: Option<NodeId>,
    /// The target.
    #[serde(rename = "to_node_id")]
    pub to: NodeId,
    /// The name.
    #[serde(serialize_with = "serialized::text")]
    pub link: Vec<u8>,
    /// Whether it keeps the target alive.
    pub strength: Strength,
    /// Whether the walk first reached the target by this reference.
    #[serde(rename = "tree")]
    pub is_tree: bool,
}

/// A step on a path from a root.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct PathStep {
    /// The node that it leads to.
    #[serde(rename = "node_id")]
    pub node: NodeId,
    /// The name of the reference.
    #[serde(serialize_with = "serialized::text")]
    pub link: Vec<u8>,
    /// Whether the reference keeps the node alive.
    pub strength: Strength,
}

impl Heap<'_> {
    /// The references of `node`, in the order of the walk; for `None`, the roots.
    pub fn references(&self, node: Option<NodeId>) -> impl Iterator<Item = NodeReference> {
        self.graph().children(node).filter_map(move |row| self.reference(node, row))
    }

    /// The references to `node`.
    pub fn referrers(&self, node: NodeId) -> impl Iterator<Item = NodeReference> {
        self.parents().referrers(node).filter_map(|(from, row)| self.reference(from, row))
    }

    fn reference(&self, from: Option<NodeId>, row: usize) -> Option<NodeReference> {
        let child = self.graph().child(row)?;
        let link = self.graph().string(child.link).to_vec();
        Some(NodeReference { from, to: child.node, link, strength: child.strength, is_tree: child.is_tree })
    }

    /// The path to `node` from its root along tree references.
    #[must_use]
    pub fn way(&self, node: NodeId) -> Vec<PathStep> {
        let tree: &TreeParents = self.tree();
        let link = |node| tree.link(node).map_or(&[][..], |link| self.graph().string(link)).to_vec();
        let step = |node| PathStep { node, link: link(node), strength: tree.strength(node) };
        tree.path(node).into_iter().map(step).collect()
    }

    /// A path to `node` with the fewest references; empty if none leads to it.
    #[must_use]
    pub fn shortest_way(&self, node: NodeId) -> Vec<PathStep> {
        let rows = ShortestPaths::of(&self.graph(), self.follow()).rows(node);
        let children = rows.into_iter().filter_map(|row| self.graph().child(row));
        let link = |child: &Child| self.graph().string(child.link).to_vec();
        children
            .map(|child| PathStep { node: child.node, link: link(&child), strength: child.strength })
            .collect()
    }
}
