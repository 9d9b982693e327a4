//! One node.

use super::Heap;
use crate::graph::Graph;
use crate::names::NodeType;
use crate::sink::{Location, NodeId};

/// A node at a glance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeView {
    /// Its number.
    pub node: NodeId,
    /// What it stands for.
    pub node_type: Vec<u8>,
    /// The class, of an object.
    pub class: Option<Vec<u8>>,
    /// The content of a string, or a scalar value as text.
    pub value: Option<Vec<u8>>,
    /// Where its memory begins; `None` for a node without.
    pub address: Option<u64>,
    /// The reference count, of what has one.
    pub refcount: Option<u32>,
    /// How many elements or properties it says to have.
    pub count: Option<u64>,
    /// The bytes of its own blocks.
    pub own_bytes: u64,
    /// The bytes that would be freed if it were gone.
    pub retained_bytes: u64,
    /// Whether anything leads to it.
    pub is_reached: bool,
    /// Where it hangs, in PHP's syntax.
    pub path: Vec<u8>,
}

impl<G: Graph + ?Sized> Heap<'_, G> {
    /// A node at a glance; `None` where the graph has none with this number.
    #[must_use]
    pub fn node(&self, node: NodeId) -> Option<NodeView> {
        let graph = self.graph();
        if node.0 as usize >= graph.counts().nodes {
            return None;
        }
        let locations: Vec<Location> = graph.locations(node).map(|row| graph.location(row)).collect();
        let text = |string| graph.string(string).to_vec();
        let content = locations.iter().find_map(|location| location.string).map(text);
        Some(NodeView {
            node,
            node_type: graph.node_type_name(node).to_vec(),
            class: locations.iter().find_map(|location| location.class).map(text),
            value: content.or_else(|| self.attribute(node, b"value").map(<[u8]>::to_vec)),
            address: locations.first().map(|location| location.address),
            refcount: locations.iter().find_map(|location| location.refcount),
            count: self.count(node),
            own_bytes: self.retention().own(&graph, node),
            retained_bytes: self.retention().retained(node),
            is_reached: self.retention().is_reached(node),
            path: self.path(node),
        })
    }

    /// How many elements the node, or the table below an array, says to have.
    pub(super) fn count(&self, node: NodeId) -> Option<u64> {
        let number = |node| std::str::from_utf8(self.attribute(node, b"#count")?).ok()?.parse().ok();
        let graph = self.graph();
        let table = || {
            if graph.node_type(node) != NodeType::ARRAY_HEADER {
                return None;
            }
            let mut children = graph.children(Some(node)).filter_map(|row| graph.child(row));
            children.find(|child| graph.string(child.link) == b"array_elements")
        };
        number(node).or_else(|| number(table()?.node))
    }

    /// A fact about a node.
    #[must_use]
    pub fn attribute(&self, node: NodeId, key: &[u8]) -> Option<&[u8]> {
        let graph = self.graph();
        let mut attributes = graph.attributes(node).map(|row| graph.attribute(row));
        let found = attributes.find(|attribute| graph.string(attribute.key) == key)?;
        Some(graph.string(found.value))
    }
}
