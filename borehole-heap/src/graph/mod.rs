//! A heap graph, wherever it lies: in memory, or in a file that is mapped.

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

/// How much of each sort a graph has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Nodes: their numbers are below this.
    pub nodes: usize,
    /// References: the rows that [`Graph::children`] gives are below this.
    pub edges: usize,
    /// Ranges of memory.
    pub locations: usize,
    /// Facts about nodes.
    pub attributes: usize,
    /// Strings: their numbers are below this.
    pub strings: usize,
}

/// What a row of references says, seen from its parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Child {
    /// What is referred to: a node that the graph has.
    pub node: NodeId,
    /// By what name.
    pub link: StringId,
    /// Whether the walk came to the child first by this reference.
    pub is_tree: bool,
    /// Whether it keeps the child alive.
    pub strength: Strength,
}

/// A fact about a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attribute {
    /// What it is about.
    pub key: StringId,
    /// The value as text.
    pub value: StringId,
    /// What the text is.
    pub kind: ValueKind,
}

/// What the text of an attribute's value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueKind {
    /// PHP's `null`; the text is `null`.
    Null,
    /// A truth value; the text is `1` or empty.
    Bool,
    /// A whole number in digits.
    Integer,
    /// A number with a fraction or an exponent, as JSON has it.
    Float,
    /// The text itself.
    Text,
    /// A list or an object as JSON: a number that is none is `["nan"]` or `["infinity"]`.
    Json,
}

impl ValueKind {
    /// What the text of an attribute is, where nobody said: reli writes the text alone.
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

/// How much memory things of one name take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Total {
    /// The type's or class's name.
    pub name: Vec<u8>,
    /// How many there are.
    pub count: u64,
    /// Their sizes together.
    pub memory_usage: u64,
}

/// What the one who walked the heap counted itself, where that is known: a graph that was read from JSON does not hold all
/// that its totals count.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// By type of location.
    pub location_types: Vec<Total>,
    /// By class of object.
    pub classes: Vec<Total>,
}

/// A graph that can be read, wherever it lies.
///
/// Numbers that the graph does not have are answered with nothing: an empty range, an empty string, a type without name.
/// So a damaged file misleads, but does no harm.
pub trait Graph {
    /// How much of each sort there is.
    fn counts(&self) -> Counts;

    /// What the node stands for.
    fn node_type(&self, node: NodeId) -> NodeType;

    /// The smallest node that stands for the same memory; `None` for a node that is alone with its.
    fn canonical(&self, node: NodeId) -> Option<NodeId>;

    /// The rows of a node's references to others, in the order of the walk; of `None`, the roots.
    fn children(&self, parent: Option<NodeId>) -> Range<usize>;

    /// A row of references. `None` where a damaged file names no node.
    fn child(&self, row: usize) -> Option<Child>;

    /// Every reference in order, with its parent and its row: faster than to ask for those of each node.
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

    /// The names of types and regions that this graph knows: those of this version, then others.
    fn vocabulary(&self) -> &Vocabulary;

    /// Facts about the whole: key and value, in order.
    fn summary(&self) -> &[(StringId, StringId)];

    /// What was counted by the one who walked.
    fn totals(&self) -> Option<&Totals>;

    /// When it was taken, as ISO 8601 says it; empty where unknown.
    fn created(&self) -> &str;

    /// The name of a node's type.
    fn node_type_name(&self, node: NodeId) -> &[u8] {
        self.name(&self.vocabulary().node_types, self.node_type(node).number())
    }

    /// The name of a type of locations.
    fn location_type_name(&self, location_type: LocationType) -> &[u8] {
        self.name(&self.vocabulary().location_types, location_type.number())
    }

    /// The name of a region.
    fn region_name(&self, region: Region) -> &[u8] {
        self.name(&self.vocabulary().regions, region.number())
    }

    /// The same in memory.
    ///
    /// # Errors
    /// When a damaged graph has more than 32 bits can count.
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

/// The names that a graph knows, by the numbers of their types.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Vocabulary {
    /// Of nodes.
    pub node_types: Vec<StringId>,
    /// Of locations.
    pub location_types: Vec<StringId>,
    /// Of regions.
    pub regions: Vec<StringId>,
}

/// Every node of a graph, in order.
pub(crate) fn nodes(count: usize) -> impl Iterator<Item = NodeId> {
    (0..u32::try_from(count).unwrap_or(u32::MAX)).map(NodeId)
}
