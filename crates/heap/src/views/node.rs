//! A single node.

use super::Heap;
use crate::graph::Graph;
use crate::names::NodeType;
use crate::sink::{Location, NodeId};

/// The description of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeView {
    /// The node's number.
    pub node: NodeId,
    /// The type of the node.
    pub node_type: Vec<u8>,
    /// The class; `None` if it is not an object.
    pub class: Option<Vec<u8>>,
    /// The content of a string, or a scalar value as text.
    pub value: Option<Vec<u8>>,
    /// The first address of its memory; `None` without memory.
    pub address: Option<u64>,
    /// The reference count; `None` if the node has none.
    pub refcount: Option<u32>,
    /// The stored number of elements or properties.
    pub count: Option<u64>,
    /// The bytes of its own blocks.
    pub own_bytes: u64,
    /// The retained size in bytes.
    pub retained_bytes: u64,
    /// Whether any references lead to it.
    pub is_reached: bool,
    /// The path in PHP's syntax.
    pub path: Vec<u8>,
}

impl<G: Graph + ?Sized> Heap<'_, G> {
    /// Describes a node; `None` if the graph has no node with this number.
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

    /// The number of elements stored in the node, or in the table below an array.
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
