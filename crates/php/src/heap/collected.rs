//! A heap graph in memory, for tests.
#![cfg(test)]

use std::collections::BTreeMap;

use borehole_heap::{AttributeValue, Edge, HeapSink, MemoryLocation, NodeId, NodeType, StringId};
use hashbrown::HashMap;

/// A complete heap in memory.
#[derive(Default)]
pub(crate) struct Collected {
    pub(crate) strings: Vec<Vec<u8>>,
    pub(crate) numbers: HashMap<Vec<u8>, u32>,
    pub(crate) nodes: Vec<NodeType>,
    pub(crate) edges: Vec<Edge>,
    /// The tree edge of each node.
    pub(crate) tree: HashMap<NodeId, usize>,
    pub(crate) locations: Vec<(NodeId, MemoryLocation)>,
    pub(crate) attributes: Vec<(NodeId, StringId, String)>,
    pub(crate) summary: BTreeMap<String, String>,
    /// The number of times that memory was missing, and inconsistent.
    pub(crate) damage: (u64, u64),
    pub(crate) reached_bytes: u64,
}

impl HeapSink for Collected {
    fn string(&mut self, string: &[u8]) -> StringId {
        if let Some(&number) = self.numbers.get(string) {
            return StringId(number);
        }
        let number = u32::try_from(self.strings.len()).unwrap();
        self.strings.push(string.to_vec());
        self.numbers.insert(string.to_vec(), number);
        StringId(number)
    }

    fn node(&mut self, node_type: NodeType) -> NodeId {
        self.nodes.push(node_type);
        NodeId(u32::try_from(self.nodes.len() - 1).unwrap())
    }

    fn edge(&mut self, edge: Edge) {
        if edge.is_tree {
            assert_eq!(self.tree.insert(edge.child, self.edges.len()), None, "a second tree edge");
            assert!(edge.parent.is_none_or(|parent| parent < edge.child));
        }
        self.edges.push(edge);
    }

    fn location(&mut self, node: NodeId, location: &MemoryLocation) {
        self.locations.push((node, *location));
    }

    fn attribute(&mut self, node: NodeId, key: StringId, value: AttributeValue<'_>) {
        let text = match value {
            AttributeValue::Null => "null".to_owned(),
            AttributeValue::Bool(is) => is.to_string(),
            AttributeValue::Integer(number) => number.to_string(),
            AttributeValue::Float(number) => number.to_string(),
            AttributeValue::Text(text) => String::from_utf8_lossy(text).into_owned(),
        };
        self.attributes.push((node, key, text));
    }

    fn summary(&mut self, key: &str, value: &str) {
        assert_eq!(self.summary.insert(key.to_owned(), value.to_owned()), None, "{key}");
    }
}

impl Collected {
    pub(crate) fn text(&self, string: StringId) -> String {
        String::from_utf8_lossy(&self.strings[string.0 as usize]).into_owned()
    }

    /// The links from a root to `node`.
    pub(crate) fn path(&self, node: NodeId) -> String {
        let mut links = Vec::new();
        let mut at = Some(node);
        while let Some(&edge) = at.and_then(|node| self.tree.get(&node)) {
            links.push(self.text(self.edges[edge].link));
            at = self.edges[edge].parent;
        }
        links.reverse();
        links.join(" -> ")
    }
}
