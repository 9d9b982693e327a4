//! The interface that receives the nodes, edges and locations of a heap.

use std::fmt;
use std::num::ParseIntError;
use std::str::FromStr;

use serde::Serialize;

use crate::names::{LocationType, NodeType, Region, Strength};

/// A node's number, in order of creation, from 0. Its text is like `#17`; serialized, it is a number.
///
/// # Examples
///
/// ```
/// use borehole_heap::NodeId;
///
/// assert_eq!(("#17".parse(), NodeId(17).to_string()), (Ok(NodeId(17)), "#17".to_owned()));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct NodeId(pub u32);

impl fmt::Display for NodeId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "#{}", self.0)
    }
}

impl FromStr for NodeId {
    type Err = ParseIntError;

    /// Parses the number with or without `#`.
    fn from_str(text: &str) -> Result<Self, ParseIntError> {
        text.strip_prefix('#').unwrap_or(text).parse().map(Self)
    }
}

/// A string's number in the sink that assigned it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StringId(pub u32);

/// A reference from a node to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    /// The node that refers; `None`: the child is a root.
    pub parent: Option<NodeId>,
    /// The node referred to.
    pub child: NodeId,
    /// The name: a variable, a property, a key, or a fixed word.
    pub link: StringId,
    /// Whether the walk first reached the child by this edge. Each node has exactly one such edge.
    pub is_tree: bool,
    /// Whether it keeps the child alive.
    pub strength: Strength,
}

/// A range of memory that a node represents.
///
/// # Examples
///
/// ```
/// use borehole_heap::{LocationType, MemoryLocation};
///
/// let location = MemoryLocation::new(LocationType::STRING, 0x1000, 32);
/// let counted = MemoryLocation { refcount: Some(2), ..location };
/// assert_eq!((counted.address, counted.size, location.refcount), (0x1000, 32, None));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryLocation {
    /// The type of the content.
    pub location_type: LocationType,
    /// The first address in the target's memory.
    pub address: u64,
    /// The logical size in bytes: the size of the content.
    pub size: u64,
    /// The bytes of the allocator's block beyond `size`.
    pub bin_overhead: u32,
    /// The class, for objects.
    pub class: Option<StringId>,
    /// The content, for strings.
    pub string: Option<StringId>,
    /// The reference count, for values that have one.
    pub refcount: Option<u32>,
    /// `GC_TYPE_INFO`, for values that have it.
    pub type_info: Option<u32>,
    /// The region of PHP's own memory; `None`: outside of it.
    pub region: Option<Region>,
}

impl MemoryLocation {
    /// A location without further facts: outside of PHP's own memory, without class, content or count.
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

/// The value of an attribute.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum AttributeValue<'a> {
    /// PHP's `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// An integer.
    Integer(i64),
    /// A number with a fraction, or NaN or infinity.
    Float(f64),
    /// Text, such as the name of a function or a file.
    Text(&'a [u8]),
}

/// The type of an attribute's value.
///
/// # Examples
///
/// ```
/// use borehole_heap::ValueKind;
///
/// assert_eq!(ValueKind::guess(b"value", b"17"), ValueKind::Integer);
/// assert_eq!(ValueKind::guess(b"file", b"17"), ValueKind::Text);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
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
    pub(crate) const ALL: [Self; 6] =
        [Self::Null, Self::Bool, Self::Integer, Self::Float, Self::Text, Self::Json];

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

/// Receives a heap as it is walked.
///
/// # Examples
///
/// ```
/// use borehole_heap::{Edge, GraphBuilder, HeapSink, LocationType, MemoryLocation, NodeType, Strength};
///
/// /// Tells a sink of a text that a variable of the program holds.
/// fn walk(sink: &mut impl HeapSink) {
///     let link = sink.string(b"text");
///     let child = sink.node(NodeType::STRING);
///     sink.edge(Edge { parent: None, child, link, is_tree: true, strength: Strength::Strong });
///     sink.location(child, &MemoryLocation::new(LocationType::STRING, 0x1000, 32));
/// }
///
/// let mut builder = GraphBuilder::new();
/// walk(&mut builder);
/// assert!(builder.finish().is_ok());
/// ```
pub trait HeapSink {
    /// Interns `string`: equal strings get the same number.
    fn string(&mut self, string: &[u8]) -> StringId;

    /// Adds a node. Its tree edge must follow before the next node.
    fn node(&mut self, node_type: NodeType) -> NodeId;

    /// Adds an edge between nodes that were added.
    fn edge(&mut self, edge: Edge);

    /// Adds a location of `node`.
    fn location(&mut self, node: NodeId, location: &MemoryLocation);

    /// Adds a fact about `node`, such as `#count` of an array's elements or `value` of a number. Facts that explain a
    /// location are facts of its node: `is_packed` of an array's table; `function_name`, `file`, `line_start` and
    /// `line_end` of a function's instructions.
    fn attribute(&mut self, node: NodeId, key: StringId, value: AttributeValue<'_>);

    /// Adds a fact about the whole heap, with a key of the memory database's `summary`.
    fn summary(&mut self, key: &str, value: &str);
}
