//! The referrers of a node from the view of a program.

use serde::Serialize;

use super::Heap;
use super::fields::is_part;
use crate::graph::Child;
use crate::names::{NodeType, Strength};
use crate::path;
use crate::serialized;
use crate::sink::NodeId;

/// The maximum number of engine nodes between a value and its holder.
const MOST_STEPS: usize = 4;

/// A referrer of a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ValueHolder {
    /// The object, array or other value that refers; `None`: the graph itself, which refers to roots.
    #[serde(rename = "node_id")]
    pub node: Option<NodeId>,
    /// The reference in PHP's syntax, such as `->items` or `['key']`.
    #[serde(serialize_with = "serialized::text")]
    pub by: Vec<u8>,
    /// Whether the reference keeps the node alive.
    pub strength: Strength,
    /// Whether the walk first reached the node by this reference.
    #[serde(rename = "tree")]
    pub is_tree: bool,
}

impl Heap<'_> {
    /// The number of references to `node`.
    #[must_use]
    pub fn holder_count(&self, node: NodeId) -> usize {
        self.parents().count(node)
    }

    /// The referrer of `node` with this index.
    #[must_use]
    pub fn holder(&self, node: NodeId, place: usize) -> Option<ValueHolder> {
        let (from, row) = self.parents().referrer(node, place)?;
        let child = self.graph().child(row)?;
        let step = self.step(from, &child);
        let is_shown = from.is_some_and(|from| !self.is_between(from));
        let (node, by) = if is_shown { (from, step) } else { self.owner(from, step) };
        Some(ValueHolder { node, by, strength: child.strength, is_tree: child.is_tree })
    }

    /// The tree reference to `node` in PHP's syntax: the last non-empty step of its path.
    #[must_use]
    pub fn name(&self, node: NodeId) -> Vec<u8> {
        let upwards = std::iter::successors(Some(node), |&node| self.tree().parent(node));
        let mut steps = upwards.take(MOST_STEPS).map(|node| self.link_of(node, self.tree().parent(node)));
        steps.find(|step| !step.is_empty()).unwrap_or_else(|| self.plain_name(node))
    }

    /// The name of the tree reference to `node`, if PHP shows nothing of it.
    fn plain_name(&self, node: NodeId) -> Vec<u8> {
        let Some(link) = self.tree().link(node) else { return Vec::new() };
        self.step(self.tree().parent(node), &Child { node, link, is_tree: true, strength: Strength::Strong })
    }

    /// Whether a node is an engine node between a value and its owner.
    fn is_between(&self, node: NodeId) -> bool {
        let node_type = self.graph().node_type(node);
        is_part(node_type)
            || matches!(node_type, NodeType::ARRAY_ELEMENT | NodeType::CALL_FRAME_VARIABLE_TABLE)
    }

    /// The owner of the part `from`, and the reference by which it holds the target of `step`.
    fn owner(&self, from: Option<NodeId>, step: Vec<u8>) -> (Option<NodeId>, Vec<u8>) {
        let (tree, mut node, mut by) = (self.tree(), from, step);
        for _ in 0..MOST_STEPS {
            let Some(part) = node.filter(|&node| self.is_between(node)) else { break };
            let above = tree.parent(part);
            if self.graph().node_type(part) == NodeType::ARRAY_ELEMENT {
                by = self.link_of(part, above);
            }
            node = above;
        }
        (node, by)
    }

    /// The text that the tree reference to `node` adds to a path.
    fn link_of(&self, node: NodeId, above: Option<NodeId>) -> Vec<u8> {
        let graph = self.graph();
        let step = |above, link| path::step(&graph, graph.node_type(above), node, link);
        above.zip(self.tree().link(node)).map_or_else(Vec::new, |(above, link)| step(above, link))
    }
}
