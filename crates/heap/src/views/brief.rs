//! A one-line description of a node.

use serde::Serialize;

use super::Heap;
use crate::graph::locations;
use crate::names::{LocationType, NodeType};
use crate::serialized;
use crate::sink::NodeId;

/// The maximum number of bytes of a string's content.
const BEGINNING: usize = 400;

/// The kind of a node from the view of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum NodeKind {
    /// An object.
    Object,
    /// An array.
    Array,
    /// A string.
    String,
    /// A number, a boolean, or null.
    Scalar,
    /// Other data of the engine.
    Other,
}

/// A one-line description of a node. Computing it is fast, however large the graph is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Brief {
    /// The node's number.
    #[serde(rename = "node_id")]
    pub node: NodeId,
    /// The kind of the node.
    pub kind: NodeKind,
    /// The class of an object, the beginning of a string, a scalar value, a function's name; otherwise the name of the
    /// node's type.
    #[serde(serialize_with = "serialized::text")]
    pub text: Vec<u8>,
    /// The number of elements stored for an array, or the bytes of a string.
    pub count: Option<u64>,
    /// The bytes of its own blocks.
    pub shallow_bytes: u64,
    /// The retained size in bytes.
    pub retained_bytes: u64,
}

impl Heap<'_> {
    /// Describes a node. A node that is not in the graph gets an empty description.
    #[must_use]
    pub fn brief(&self, node: NodeId) -> Brief {
        let shallow_bytes = self.retention().shallow(&self.graph(), node);
        Brief { shallow_bytes, ..self.named(node) }
    }

    /// Like [`Self::brief`], without the bytes of its own blocks.
    pub(super) fn named(&self, node: NodeId) -> Brief {
        let (kind, text, count) = self.described(node);
        Brief { node, kind, text, count, shallow_bytes: 0, retained_bytes: self.retention().retained(node) }
    }

    fn described(&self, node: NodeId) -> (NodeKind, Vec<u8>, Option<u64>) {
        let graph = self.graph();
        if let Some(class) = self.class(node) {
            return (NodeKind::Object, graph.string(class).to_vec(), None);
        }
        if let Some(content) = self.content(node) {
            let beginning = &content[..content.len().min(BEGINNING)];
            return (NodeKind::String, beginning.to_vec(), Some(content.len() as u64));
        }
        match graph.node_type(node) {
            NodeType::ARRAY_HEADER => (NodeKind::Array, b"array".to_vec(), self.count(node)),
            NodeType::SCALAR_VALUE => {
                (NodeKind::Scalar, self.attribute(node, b"value").unwrap_or(b"?").to_vec(), None)
            }
            _ => (NodeKind::Other, self.type_text(node), self.count(node)),
        }
    }

    fn content(&self, node: NodeId) -> Option<&[u8]> {
        let graph = self.graph();
        let mut locations = locations(graph, node);
        let found = locations.find(|location| location.location_type == LocationType::STRING)?;
        found.string.map(|string| graph.string(string))
    }

    /// The type without the suffix common to all types, and the function that it belongs to.
    fn type_text(&self, node: NodeId) -> Vec<u8> {
        let name = self.graph().node_type_name(node);
        let name = name.strip_suffix(b"Context").unwrap_or(name);
        match self.attribute(node, b"function_name") {
            Some(function) => [name, b" ", function].concat(),
            None => name.to_vec(),
        }
    }
}
