//! A node on one line.

use super::Heap;
use crate::graph::Graph;
use crate::names::{LocationType, NodeType};
use crate::sink::NodeId;

/// As many bytes of a string's content are given.
const BEGINNING: usize = 400;

/// What a node is to a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An object.
    Object,
    /// An array.
    Array,
    /// A string.
    String,
    /// A number, a truth value, or nothing.
    Scalar,
    /// What the engine has besides.
    Other,
}

/// A node on one line, which is soon there however large the graph is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Brief {
    /// Its number.
    pub node: NodeId,
    /// What it is to a program.
    pub kind: Kind,
    /// The class of an object, the beginning of a string, a scalar value, a function's name; otherwise the name of the node's type.
    pub text: Vec<u8>,
    /// How many elements an array says to have, how many bytes a string has.
    pub count: Option<u64>,
    /// The bytes of its own blocks.
    pub own_bytes: u64,
    /// The bytes that would be freed if it were gone.
    pub retained_bytes: u64,
}

impl<G: Graph + ?Sized> Heap<'_, G> {
    /// A node on one line. Of one that the graph does not have, nothing is known.
    #[must_use]
    pub fn brief(&self, node: NodeId) -> Brief {
        let own_bytes = self.retention().own(&self.graph(), node);
        Brief { own_bytes, ..self.named(node) }
    }

    /// The same without the bytes of its own blocks.
    pub(super) fn named(&self, node: NodeId) -> Brief {
        let (kind, text, count) = self.described(node);
        Brief { node, kind, text, count, own_bytes: 0, retained_bytes: self.retention().retained(node) }
    }

    fn described(&self, node: NodeId) -> (Kind, Vec<u8>, Option<u64>) {
        let graph = self.graph();
        if let Some(class) = self.class(node) {
            return (Kind::Object, graph.string(class).to_vec(), None);
        }
        if let Some(content) = self.content(node) {
            let beginning = &content[..content.len().min(BEGINNING)];
            return (Kind::String, beginning.to_vec(), Some(content.len() as u64));
        }
        match graph.node_type(node) {
            NodeType::ARRAY_HEADER => (Kind::Array, b"array".to_vec(), self.count(node)),
            NodeType::SCALAR_VALUE => {
                (Kind::Scalar, self.attribute(node, b"value").unwrap_or(b"?").to_vec(), None)
            }
            _ => (Kind::Other, self.type_text(node), self.count(node)),
        }
    }

    fn content(&self, node: NodeId) -> Option<&[u8]> {
        let graph = self.graph();
        let mut locations = graph.locations(node).map(|row| graph.location(row));
        let found = locations.find(|location| location.location_type == LocationType::STRING)?;
        found.string.map(|string| graph.string(string))
    }

    /// The type without the word that all types end in, and the function that it is of.
    fn type_text(&self, node: NodeId) -> Vec<u8> {
        let name = self.graph().node_type_name(node);
        let name = name.strip_suffix(b"Context").unwrap_or(name);
        match self.attribute(node, b"function_name") {
            Some(function) => [name, b" ", function].concat(),
            None => name.to_vec(),
        }
    }
}
