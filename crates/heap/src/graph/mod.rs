//! Heap graphs, in memory or in a mapped file.

mod build;
mod canonical;
mod columns;
mod copy;
mod parents;
mod rows;
mod strings;

use std::ops::Range;

use crate::error::Error;
use crate::names::{LocationType, NodeType, Region, Strength};
use crate::sink::{Location, NodeId, StringId};

pub use build::Builder;
pub(crate) use canonical::{Groups, groups};
pub use columns::HeapGraph;
pub(crate) use columns::{NO_ATTRIBUTE, NO_LOCATION};
pub use parents::{Parents, TreeParents};
pub(crate) use rows::{Rows, STRIDE as ROWS_STRIDE, range_within};
pub(crate) use strings::STRIDE as STRINGS_STRIDE;

/// The number of items of each kind in a graph.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
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
pub struct Attribute {
    /// The name of the fact.
    pub key: StringId,
    /// The value as text.
    pub value: StringId,
    /// The type of the value.
    pub kind: ValueKind,
}

/// The type of an attribute's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueKind {
    /// PHP's `null`; the text is `null`.
    Null,
    /// A boolean; the text is `1` or empty.
    Bool,
    /// An integer in digits.
    Integer,
    /// A number with a fraction or an exponent, as in JSON.
    Float,
    /// Text.
    Text,
    /// A list or an object as JSON; `["nan"]` or `["infinity"]` for these floats.
    Json,
}

impl ValueKind {
    /// Infers the type of a value from its text, because reli writes only the text.
    #[must_use]
    pub fn guess(key: &[u8], value: &[u8]) -> Self {
        let text = std::str::from_utf8(value).unwrap_or_default();
        match key {
            b"#is_internal" | b"is_packed" => Self::Bool,
            b"function_name" | b"file" => Self::Text,
            _ if text == "null" => Self::Null,
            _ if text.is_empty() && key == b"value" => Self::Bool,
            _ if text.parse::<i64>().is_ok_and(|number| number.to_string() == text) => Self::Integer,
            _ if text.parse::<f64>().is_ok_and(f64::is_finite) => Self::Float,
            _ if text.starts_with('[') || text.starts_with('{') => Self::Json,
            _ => Self::Text,
        }
    }
}

/// The memory of all items with one name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Total {
    /// The name of the type or class.
    pub name: Vec<u8>,
    /// The number of items.
    pub count: u64,
    /// Their total size in bytes.
    pub memory_usage: u64,
}

/// The totals counted by the program that walked the heap, if known. A graph read from JSON lacks some of the locations
/// that its totals include.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// By location type.
    pub location_types: Vec<Total>,
    /// By class of object.
    pub classes: Vec<Total>,
}

/// A readable graph, independent of where it is stored.
///
/// A number that is not in the graph yields nothing: an empty range, an empty string, a type without a name. So a
/// damaged file gives wrong results, but cannot do harm.
pub trait Graph {
    /// The number of items of each kind.
    fn counts(&self) -> Counts;

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
        for parent in std::iter::once(None).chain(nodes(self.counts().nodes).map(Some)) {
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
    fn location(&self, row: usize) -> Location;

    /// The node of a row of locations.
    fn location_node(&self, row: usize) -> NodeId;

    /// The rows of a node's attributes.
    fn attributes(&self, node: NodeId) -> Range<usize>;

    /// A row of attributes.
    fn attribute(&self, row: usize) -> Attribute;

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

impl<G: Graph + ?Sized> Graph for &G {
    #[inline]
    fn counts(&self) -> Counts {
        (**self).counts()
    }

    #[inline]
    fn node_type(&self, node: NodeId) -> NodeType {
        (**self).node_type(node)
    }

    #[inline]
    fn canonical(&self, node: NodeId) -> Option<NodeId> {
        (**self).canonical(node)
    }

    #[inline]
    fn children(&self, parent: Option<NodeId>) -> Range<usize> {
        (**self).children(parent)
    }

    #[inline]
    fn child(&self, row: usize) -> Option<Child> {
        (**self).child(row)
    }

    fn each_reference(&self, see: &mut dyn FnMut(Option<NodeId>, usize, Child)) {
        (**self).each_reference(see);
    }

    #[inline]
    fn locations(&self, node: NodeId) -> Range<usize> {
        (**self).locations(node)
    }

    #[inline]
    fn location(&self, row: usize) -> Location {
        (**self).location(row)
    }

    #[inline]
    fn location_node(&self, row: usize) -> NodeId {
        (**self).location_node(row)
    }

    #[inline]
    fn attributes(&self, node: NodeId) -> Range<usize> {
        (**self).attributes(node)
    }

    #[inline]
    fn attribute(&self, row: usize) -> Attribute {
        (**self).attribute(row)
    }

    #[inline]
    fn attribute_node(&self, row: usize) -> NodeId {
        (**self).attribute_node(row)
    }

    #[inline]
    fn string(&self, string: StringId) -> &[u8] {
        (**self).string(string)
    }

    #[inline]
    fn vocabulary(&self) -> &Vocabulary {
        (**self).vocabulary()
    }

    #[inline]
    fn summary(&self) -> &[(StringId, StringId)] {
        (**self).summary()
    }

    #[inline]
    fn totals(&self) -> Option<&Totals> {
        (**self).totals()
    }

    #[inline]
    fn created(&self) -> &str {
        (**self).created()
    }
}

/// The names in a graph, by the numbers of their types.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
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
