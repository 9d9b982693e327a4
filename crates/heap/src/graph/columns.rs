//! A graph in memory, stored in columns.

use std::ops::Range;

use super::column::Column;
use super::locations::LocationColumns;
use super::rows::NodeRows;
use super::strings::StringColumn;
use super::{CanonicalGroups, Child, Graph, GraphCounts, HeapFacts, NodeAttribute, Totals, Vocabulary};
use crate::names::{LocationType, NodeType, Strength};
use crate::sink::{MemoryLocation, NodeId, StringId, ValueKind};

/// A graph in memory.
///
/// A node takes 6 bytes, a reference 9, a location 20, an attribute 13, and a string 5 beside its content; a packed
/// graph ([`GraphStorage::Packed`](super::GraphStorage)) a fraction of that.
#[doc = crate::doc_graph::graph_example!(
    r#"let graph: borehole_heap::HeapGraph = graph;
assert_eq!(graph.counts().nodes, 2);"#
)]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeapGraph {
    pub(super) strings: StringColumn,
    pub(super) vocabulary: Vocabulary,
    pub(super) node_types: Vec<NodeType>,
    pub(super) edges: EdgeRows,
    pub(super) locations: LocationColumns,
    pub(super) location_rows: NodeRows,
    pub(super) attributes: AttributeColumns,
    pub(super) attribute_rows: NodeRows,
    pub(super) groups: CanonicalGroups,
    pub(super) facts: HeapFacts,
}

/// Attributes, sorted by node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct AttributeColumns {
    pub(super) nodes: Column<u32>,
    pub(super) keys: Column<u32>,
    pub(super) values: Column<u32>,
    /// The index in [`ValueKind::ALL`].
    pub(super) kinds: Column<u8>,
}

impl AttributeColumns {
    /// The rows of each of `nodes` nodes.
    pub(super) fn node_rows(&self, nodes: usize) -> NodeRows {
        NodeRows::of(self.nodes.iter(), nodes)
    }

    fn len(&self) -> usize {
        self.nodes.len()
    }

    fn get(&self, row: usize) -> Option<NodeAttribute> {
        let kind = usize::from(self.kinds.get(row)?);
        Some(NodeAttribute {
            key: StringId(self.keys.get(row)?),
            value: StringId(self.values.get(row)?),
            kind: ValueKind::ALL.get(kind).copied().unwrap_or(ValueKind::Null),
        })
    }

    fn memory_bytes(&self) -> usize {
        let numbers = [&self.nodes, &self.keys, &self.values].map(Column::memory_bytes);
        numbers.iter().sum::<usize>() + self.kinds.memory_bytes()
    }
}

/// References sorted by parent: first the roots, then the references of node 0, and so on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct EdgeRows {
    /// The start of each node's references, and at last the end.
    pub(super) starts: Column<u32>,
    pub(super) children: Column<u32>,
    pub(super) links: Column<u32>,
    pub(super) flags: Column<u8>,
}

const TREE: u8 = 1;

/// Encodes whether a reference is of the tree, and its strength.
pub(super) const fn flags(is_tree: bool, strength: Strength) -> u8 {
    let strength = match strength {
        Strength::Strong => 0,
        Strength::Weak => 1,
        Strength::Structural => 2,
    };
    strength << 1 | is_tree as u8
}

const fn strength(flags: u8) -> Strength {
    match flags >> 1 {
        0 => Strength::Strong,
        1 => Strength::Weak,
        _ => Strength::Structural,
    }
}

impl EdgeRows {
    fn memory_bytes(&self) -> usize {
        let numbers = [&self.starts, &self.children, &self.links].map(Column::memory_bytes);
        numbers.iter().sum::<usize>() + self.flags.memory_bytes()
    }

    /// For `None`, the rows of the roots.
    fn range(&self, parent: Option<NodeId>) -> Range<usize> {
        let start = |entry: usize| self.starts.get(entry).map(|row| row as usize);
        let Some(NodeId(parent)) = parent else { return 0..start(0).unwrap_or_default() };
        match (start(parent as usize), start(parent as usize + 1)) {
            (Some(first), Some(end)) => first..end,
            _ => 0..0,
        }
    }
}

impl HeapGraph {
    /// The number of bytes of memory that it takes.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let strings = self.strings.total_bytes() + self.strings.len() * 9 / 2;
        let rows = (self.location_rows.starts().len() + self.attribute_rows.starts().len()) * 4;
        let columns = size_of_val(self.node_types.as_slice())
            + self.edges.memory_bytes()
            + self.locations.memory_bytes()
            + self.attributes.memory_bytes()
            + size_of_val(self.groups.as_slice());
        strings + rows + columns
    }
}

impl Graph for HeapGraph {
    fn counts(&self) -> GraphCounts {
        GraphCounts {
            nodes: self.node_types.len(),
            edges: self.edges.children.len(),
            locations: self.locations.len(),
            attributes: self.attributes.len(),
            strings: self.strings.len(),
        }
    }

    fn node_type(&self, node: NodeId) -> NodeType {
        self.node_types.get(node.0 as usize).copied().unwrap_or(NodeType::new(u16::MAX))
    }

    fn canonical(&self, node: NodeId) -> Option<NodeId> {
        let row = self.groups.binary_search_by_key(&node.0, |&(node, _)| node).ok()?;
        self.groups.get(row).map(|&(_, smallest)| NodeId(smallest))
    }

    fn children(&self, parent: Option<NodeId>) -> Range<usize> {
        self.edges.range(parent)
    }

    fn child(&self, row: usize) -> Option<Child> {
        let flags = self.edges.flags.get(row)?;
        Some(Child {
            node: NodeId(self.edges.children.get(row)?),
            link: StringId(self.edges.links.get(row)?),
            is_tree: flags & TREE != 0,
            strength: strength(flags),
        })
    }

    fn locations(&self, node: NodeId) -> Range<usize> {
        self.location_rows.range(node.0, |row| self.locations.node(row))
    }

    fn location(&self, row: usize) -> MemoryLocation {
        self.locations.get(row).unwrap_or(NO_LOCATION)
    }

    fn location_node(&self, row: usize) -> NodeId {
        NodeId(self.locations.node(row))
    }

    fn attributes(&self, node: NodeId) -> Range<usize> {
        self.attribute_rows.range(node.0, |row| self.attributes.nodes.get(row).unwrap_or(u32::MAX))
    }

    fn attribute(&self, row: usize) -> NodeAttribute {
        self.attributes.get(row).unwrap_or(NO_ATTRIBUTE)
    }

    fn attribute_node(&self, row: usize) -> NodeId {
        NodeId(self.attributes.nodes.get(row).unwrap_or(u32::MAX))
    }

    fn string(&self, string: StringId) -> &[u8] {
        self.strings.get(string.0 as usize)
    }

    fn vocabulary(&self) -> &Vocabulary {
        &self.vocabulary
    }

    fn summary(&self) -> &[(StringId, StringId)] {
        &self.facts.summary
    }

    fn totals(&self) -> Option<&Totals> {
        self.facts.totals.as_ref()
    }

    fn created(&self) -> &str {
        &self.facts.created
    }
}

/// The result for a missing row.
pub(crate) const NO_LOCATION: MemoryLocation = MemoryLocation::new(LocationType::new(u16::MAX), 0, 0);

/// The result for a missing row.
pub(crate) const NO_ATTRIBUTE: NodeAttribute =
    NodeAttribute { key: StringId(u32::MAX), value: StringId(u32::MAX), kind: ValueKind::Null };
