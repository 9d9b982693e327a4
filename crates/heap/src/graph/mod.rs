//! Heap graphs, in memory or in a mapped file.

mod build;
mod canonical;
mod column;
mod columns;
mod compression;
mod copy;
mod gathered;
mod locations;
mod of_node;
mod packed;
mod parents;
mod rows;
mod strings;

use std::ops::Range;

use serde::Serialize;

use borehole_text::Error;

use crate::names::{LocationType, NodeType, Region, Strength};
use crate::sink::{MemoryLocation, NodeId, StringId, ValueKind};

pub use build::GraphBuilder;
pub(crate) use canonical::{CanonicalGroups, groups};
pub use column::GraphStorage;
pub use columns::HeapGraph;
pub(crate) use columns::{NO_ATTRIBUTE, NO_LOCATION};
pub(crate) use of_node::{
    attribute, attributes, child, children, contains, locations, parents, stored_count, strings,
};
pub use parents::{Parents, TreeParents};
pub(crate) use rows::{NodeRows, STRIDE as ROWS_STRIDE, range_within};
pub(crate) use strings::STRIDE as STRINGS_STRIDE;

/// The number of items of each kind in a graph.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct GraphCounts {
    /// Nodes. Node numbers are below this.
    pub nodes: usize,
    /// References. The rows from [`Graph::children`] are below this.
    pub edges: usize,
    /// Ranges of memory.
    pub locations: usize,
    /// Facts about nodes.
    pub attributes: usize,
    /// Strings. String numbers are below this.
    pub strings: usize,
}

/// A row of references, seen from its parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Child {
    /// The node referred to, which is in the graph.
    pub node: NodeId,
    /// The name of the reference.
    pub link: StringId,
    /// Whether the walk first reached the child by this reference.
    pub is_tree: bool,
    /// Whether it keeps the child alive.
    pub strength: Strength,
}

/// A fact about a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NodeAttribute {
    /// The name of the fact.
    pub key: StringId,
    /// The value as text.
    pub value: StringId,
    /// The type of the value.
    pub kind: ValueKind,
}

/// The memory of all items with one name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MemoryTotal {
    /// The name of the type or class.
    #[serde(serialize_with = "crate::serialized::text")]
    pub name: Vec<u8>,
    /// The number of items.
    pub count: u64,
    /// Their total size in bytes.
    pub memory_usage: u64,
}

/// The totals counted by the program that walked the heap, if known. A graph read from JSON lacks some of the locations
/// that its totals include.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Totals {
    /// By location type.
    pub location_types: Vec<MemoryTotal>,
    /// By class of object.
    pub classes: Vec<MemoryTotal>,
}

/// Facts about a whole heap.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct HeapFacts {
    /// Keys and values, in order.
    pub(crate) summary: Vec<(StringId, StringId)>,
    pub(crate) totals: Option<Totals>,
    /// The time of the snapshot, in ISO 8601; empty if unknown.
    pub(crate) created: String,
}

/// A readable graph, independent of where it is stored.
///
/// A number that is not in the graph yields nothing: an empty range, an empty string, a type without a name. So a
/// damaged file gives wrong results, but cannot do harm.
#[doc = crate::doc_graph::graph_example!(
    r#"let root = graph.children(None).find_map(|row| graph.child(row)).ok_or("a root")?;
assert_eq!((root.node, graph.string(root.link)), (object, &b"cache"[..]));
assert_eq!(graph.node_type(string), NodeType::STRING);"#
)]
pub trait Graph {
    /// The number of items of each kind.
    fn counts(&self) -> GraphCounts;

    /// The type of a node.
    fn node_type(&self, node: NodeId) -> NodeType;

    /// The smallest node that represents the same memory; `None` if no other node does.
    fn canonical(&self, node: NodeId) -> Option<NodeId>;

    /// The rows of a node's references, in the order of the walk; for `None`, the roots.
    fn children(&self, parent: Option<NodeId>) -> Range<usize>;

    /// A row of references; `None` if it refers to a missing node in a damaged file.
    fn child(&self, row: usize) -> Option<Child>;

    /// Visits all references in order, with parent and row. Faster than reading those of each node.
    fn each_reference(&self, see: &mut dyn FnMut(Option<NodeId>, usize, Child)) {
        for parent in parents(self) {
            for row in self.children(parent) {
                if let Some(child) = self.child(row) {
                    see(parent, row, child);
                }
            }
        }
    }

    /// The rows of a node's locations.
    fn locations(&self, node: NodeId) -> Range<usize>;

    /// A row of locations.
    fn location(&self, row: usize) -> MemoryLocation;

    /// The node of a row of locations.
    fn location_node(&self, row: usize) -> NodeId;

    /// The rows of a node's attributes.
    fn attributes(&self, node: NodeId) -> Range<usize>;

    /// A row of attributes.
    fn attribute(&self, row: usize) -> NodeAttribute;

    /// The node of a row of attributes.
    fn attribute_node(&self, row: usize) -> NodeId;

    /// The string with this number.
    fn string(&self, string: StringId) -> &[u8];

    /// The names of types and regions in this graph: those of this version, then others.
    fn vocabulary(&self) -> &Vocabulary;

    /// Facts about the whole heap: key and value, in order.
    fn summary(&self) -> &[(StringId, StringId)];

    /// The totals counted by the program that walked the heap.
    fn totals(&self) -> Option<&Totals>;

    /// The time of the snapshot, in ISO 8601; empty if unknown.
    fn created(&self) -> &str;

    /// The name of a node's type.
    fn node_type_name(&self, node: NodeId) -> &[u8] {
        self.name(&self.vocabulary().node_types, self.node_type(node).number())
    }

    /// The name of a location type.
    fn location_type_name(&self, location_type: LocationType) -> &[u8] {
        self.name(&self.vocabulary().location_types, location_type.number())
    }

    /// The name of a region.
    fn region_name(&self, region: Region) -> &[u8] {
        self.name(&self.vocabulary().regions, region.number())
    }

    /// Copies the graph into memory.
    ///
    /// # Errors
    /// If a damaged graph has more items than fit in 32 bits.
    fn to_graph(&self) -> Result<HeapGraph, Error> {
        copy::copy(self)
    }

    /// The name with this number in a list of the vocabulary.
    fn name(&self, names: &[StringId], number: u16) -> &[u8] {
        names.get(usize::from(number)).map_or(&[], |&name| self.string(name))
    }
}

/// Implements methods of [`Graph`] by those of the graph behind the reference.
macro_rules! forwarded {
    ($($method:ident($($argument:ident: $kind:ty)?) -> $result:ty;)+) => {
        $(#[inline]
        fn $method(&self, $($argument: $kind)?) -> $result {
            (**self).$method($($argument)?)
        })+
    };
}

impl<G: Graph + ?Sized> Graph for &G {
    forwarded! {
        counts() -> GraphCounts;
        node_type(node: NodeId) -> NodeType;
        canonical(node: NodeId) -> Option<NodeId>;
        children(parent: Option<NodeId>) -> Range<usize>;
        child(row: usize) -> Option<Child>;
        each_reference(see: &mut dyn FnMut(Option<NodeId>, usize, Child)) -> ();
        locations(node: NodeId) -> Range<usize>;
        location(row: usize) -> MemoryLocation;
        location_node(row: usize) -> NodeId;
        attributes(node: NodeId) -> Range<usize>;
        attribute(row: usize) -> NodeAttribute;
        attribute_node(row: usize) -> NodeId;
        string(string: StringId) -> &[u8];
        vocabulary() -> &Vocabulary;
        summary() -> &[(StringId, StringId)];
        totals() -> Option<&Totals>;
        created() -> &str;
    }
}

/// The names in a graph, by the numbers of their types.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Vocabulary {
    /// Node types.
    pub node_types: Vec<StringId>,
    /// Location types.
    pub location_types: Vec<StringId>,
    /// Regions.
    pub regions: Vec<StringId>,
}

/// Iterates over all nodes of a graph, in order.
pub(crate) fn nodes(count: usize) -> impl Iterator<Item = NodeId> {
    (0..u32::try_from(count).unwrap_or(u32::MAX)).map(NodeId)
}
