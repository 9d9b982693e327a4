//! A single node.

use serde::Serialize;

use super::Heap;
use crate::graph::{attribute, child, locations, stored_count};
use crate::names::NodeType;
use crate::serialized;
use crate::sink::{MemoryLocation, NodeId};

/// The description of a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct NodeView {
    /// The node's number.
    #[serde(rename = "node_id")]
    pub node: NodeId,
    /// The type of the node.
    #[serde(rename = "type", serialize_with = "serialized::text")]
    pub node_type: Vec<u8>,
    /// The class; `None` if it is not an object.
    #[serde(serialize_with = "serialized::optional_text")]
    pub class: Option<Vec<u8>>,
    /// The content of a string, or a scalar value as text.
    #[serde(serialize_with = "serialized::optional_text")]
    pub value: Option<Vec<u8>>,
    /// The first address of its memory; `None` without memory.
    pub address: Option<u64>,
    /// The reference count; `None` if the node has none.
    pub refcount: Option<u32>,
    /// The stored number of elements or properties.
    pub count: Option<u64>,
    /// The bytes of its own blocks.
    pub shallow_bytes: u64,
    /// The retained size in bytes.
    pub retained_bytes: u64,
    /// Whether any references lead to it.
    #[serde(rename = "reached")]
    pub is_reached: bool,
    /// The path in PHP's syntax.
    #[serde(serialize_with = "serialized::text")]
    pub path: Vec<u8>,
}

impl Heap<'_> {
    /// Describes a node; `None` if the graph has no node with this number.
    #[must_use]
    pub fn node(&self, node: NodeId) -> Option<NodeView> {
        let graph = self.graph();
        if node.0 as usize >= graph.counts().nodes {
            return None;
        }
        let locations: Vec<MemoryLocation> = locations(graph, node).collect();
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
            shallow_bytes: self.retention().shallow(&graph, node),
            retained_bytes: self.retention().retained(node),
            is_reached: self.retention().is_reached(node),
            path: self.path(node),
        })
    }

    /// The number of elements stored in the node, or in the table below an array.
    pub(super) fn count(&self, node: NodeId) -> Option<u64> {
        let graph = self.graph();
        let table = || {
            let is_array = graph.node_type(node) == NodeType::ARRAY_HEADER;
            is_array.then(|| child(graph, node, b"array_elements")).flatten()
        };
        stored_count(graph, node).or_else(|| stored_count(graph, table()?))
    }

    /// The text of an attribute of a node.
    #[must_use]
    pub fn attribute(&self, node: NodeId, key: &[u8]) -> Option<&[u8]> {
        attribute(self.graph(), node, key)
    }
}
