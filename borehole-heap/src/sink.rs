//! Where the nodes, edges and locations of a heap flow into.

use std::fmt;
use std::num::ParseIntError;
use std::str::FromStr;

use crate::names::{LocationType, NodeType, Region, Strength};

/// A node's number: in the order of creation, from 0. As text it is `#17`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u32);

impl fmt::Display for NodeId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "#{}", self.0)
    }
}

impl FromStr for NodeId {
    type Err = ParseIntError;

    /// The number with or without its sign.
    fn from_str(text: &str) -> Result<Self, ParseIntError> {
        text.strip_prefix('#').unwrap_or(text).parse().map(Self)
    }
}

/// A string's number in the sink that gave it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StringId(pub u32);

/// A reference from a node to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    /// `None`: the child is a root.
    pub parent: Option<NodeId>,
    /// What is referred to.
    pub child: NodeId,
    /// By what name: a variable, a property, a key, or a fixed word.
    pub link: StringId,
    /// Whether this is the edge by which the walk came to the child first. Each node has exactly one.
    pub is_tree: bool,
    /// Whether it keeps the child alive.
    pub strength: Strength,
}

/// Memory that a node stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Location {
    /// What it holds.
    pub location_type: LocationType,
    /// Where it begins in the target's memory.
    pub address: u64,
    /// Its logical size in bytes: what its content needs.
    pub size: u64,
    /// Bytes that the allocator's block has beyond `size`.
    pub bin_overhead: u32,
    /// The class, of objects.
    pub class: Option<StringId>,
    /// The content, of strings.
    pub string: Option<StringId>,
    /// The reference count, of what has one.
    pub refcount: Option<u32>,
    /// `GC_TYPE_INFO`, of what has it.
    pub type_info: Option<u32>,
    /// `None`: in none of PHP's own.
    pub region: Option<Region>,
}

impl Location {
    /// Memory of which nothing more is known: in none of PHP's own, with neither class, content nor count.
    #[must_use]
    pub const fn new(location_type: LocationType, address: u64, size: u64) -> Self {
        Self {
            location_type,
            address,
            size,
            bin_overhead: 0,
            class: None,
            string: None,
            refcount: None,
            type_info: None,
            region: None,
        }
    }
}

/// What an attribute says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    /// Nothing: PHP's `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A whole number.
    Integer(i64),
    /// A number with a fraction, or one that is none.
    Float(f64),
    /// A text: the name of a function or a file.
    Text(&'a [u8]),
}

/// What takes a heap as it is walked.
pub trait HeapSink {
    /// The number of `string`. Equal strings have the same one.
    fn string(&mut self, string: &[u8]) -> StringId;

    /// Adds a node. Its tree edge follows before the next node does.
    fn node(&mut self, node_type: NodeType) -> NodeId;

    /// Adds an edge between nodes that were added.
    fn edge(&mut self, edge: Edge);

    /// Adds a location of `node`.
    fn location(&mut self, node: NodeId, location: &Location);

    /// Adds a fact about `node`, such as `#count` of an array's elements or `value` of a number. What says how a location
    /// is to be understood is a fact of its node: `is_packed` of an array's table; `function_name`, `file`, `line_start` and
    /// `line_end` of a function's instructions.
    fn attribute(&mut self, node: NodeId, key: StringId, value: Value<'_>);

    /// Adds a fact about the whole, by a key of the memory database's `summary`.
    fn summary(&mut self, key: &str, value: &str);
}
