//! Builds a graph.

use std::mem;

use hashbrown::HashMap;

use super::columns::{AttributeRow, Edges, HeapGraph, LocationRow, flags};
use super::strings::Interner;
use super::{Totals, ValueKind, Vocabulary, canonical};
use crate::error::{Error, ErrorKind};
use crate::names::{LocationType, NodeType, Region};
use crate::number::{Digits, float_text};
use crate::sink::{Edge, HeapSink, Location, NodeId, StringId, Value};

/// Receives a heap as it is walked, and builds a [`HeapGraph`].
#[derive(Debug)]
pub struct Builder {
    strings: Interner,
    /// The strings of small numbers, which most counts are; the maximum means that there is none yet.
    small_numbers: [u32; SMALL_NUMBERS],
    vocabulary: Vocabulary,
    /// The numbers of names unknown to this version, by string and list.
    newer: HashMap<(List, u32), u16>,
    node_types: Vec<NodeType>,
    edges: Edges,
    locations: Vec<LocationRow>,
    attributes: Vec<AttributeRow>,
    kinds: Vec<ValueKind>,
    summary: Vec<(StringId, StringId)>,
    totals: Option<Totals>,
    created: String,
    is_full: bool,
}

const SMALL_NUMBERS: usize = 256;

/// A list of the vocabulary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum List {
    Nodes,
    Locations,
    Regions,
}

impl Default for Builder {
    fn default() -> Self {
        Self::new()
    }
}

impl Builder {
    /// Creates a builder without nodes.
    #[must_use]
    pub fn new() -> Self {
        let mut strings = Interner::default();
        let mut known = |names: &[&str]| -> Vec<StringId> {
            // There are few names, so a number is always available.
            let number = |name: &&str| strings.intern(name.as_bytes()).unwrap_or_default();
            names.iter().map(number).map(StringId).collect()
        };
        let vocabulary = Vocabulary {
            node_types: known(NodeType::NAMES),
            location_types: known(LocationType::NAMES),
            regions: known(Region::NAMES),
        };
        Self {
            strings,
            small_numbers: [u32::MAX; SMALL_NUMBERS],
            vocabulary,
            newer: HashMap::new(),
            node_types: Vec::new(),
            edges: Edges::default(),
            locations: Vec::new(),
            attributes: Vec::new(),
            kinds: Vec::new(),
            summary: Vec::new(),
            totals: None,
            created: String::new(),
            is_full: false,
        }
    }

    /// Sets the time of the snapshot, in ISO 8601.
    pub fn set_created(&mut self, created: &str) {
        created.clone_into(&mut self.created);
    }

    /// Sets the totals counted by the program that walked the heap.
    pub fn set_totals(&mut self, totals: Totals) {
        self.totals = Some(totals);
    }

    /// The node type with this name; an unknown name gets a new number.
    pub fn node_type(&mut self, name: &[u8]) -> NodeType {
        NodeType::new(self.named(List::Nodes, name))
    }

    /// The location type with this name; an unknown name gets a new number.
    pub fn location_type(&mut self, name: &[u8]) -> LocationType {
        LocationType::new(self.named(List::Locations, name))
    }

    /// The region with this name; an unknown name gets a new number.
    pub fn region(&mut self, name: &[u8]) -> Region {
        Region::new(self.named(List::Regions, name))
    }

    fn named(&mut self, list: List, name: &[u8]) -> u16 {
        let string = self.string(name);
        let names = match list {
            List::Nodes => &mut self.vocabulary.node_types,
            List::Locations => &mut self.vocabulary.location_types,
            List::Regions => &mut self.vocabulary.regions,
        };
        let known = match list {
            List::Nodes => NodeType::NAMES.len(),
            List::Locations => LocationType::NAMES.len(),
            List::Regions => Region::NAMES.len(),
        };
        if let Some(number) = names[..known].iter().position(|&known| known == string) {
            return u16::try_from(number).unwrap_or(u16::MAX);
        }
        *self.newer.entry((list, string.0)).or_insert_with(|| {
            let number = u16::try_from(names.len()).ok().filter(|&number| number < u16::MAX);
            self.is_full |= number.is_none();
            names.extend(number.map(|_| string));
            number.unwrap_or(u16::MAX)
        })
    }

    /// Adds a fact about `node` whose value is already text.
    pub fn attribute_text(&mut self, node: NodeId, key: StringId, value: &[u8], kind: ValueKind) {
        let value = self.string(value);
        self.attribute_strings(node, key, value, kind);
    }

    /// Like [`Self::attribute_text`], with an interned value.
    pub(crate) fn attribute_strings(
        &mut self,
        node: NodeId,
        key: StringId,
        value: StringId,
        kind: ValueKind,
    ) {
        if self.has(node) {
            self.attributes.push(AttributeRow { node: node.0, key: key.0, value: value.0 });
            self.kinds.push(kind);
        }
    }

    /// Adds a fact about the whole heap, with interned strings.
    pub(crate) fn summary_strings(&mut self, key: StringId, value: StringId) {
        self.summary.push((key, value));
    }

    /// The string of a number.
    fn number(&mut self, number: i64) -> StringId {
        let place = usize::try_from(number).ok().filter(|&place| place < SMALL_NUMBERS);
        let known = place.map(|place| self.small_numbers[place]).filter(|&string| string != u32::MAX);
        if let Some(string) = known {
            return StringId(string);
        }
        let string = self.string(Digits::of(number).text());
        if let Some(place) = place {
            self.small_numbers[place] = string.0;
        }
        string
    }

    /// Builds the graph.
    ///
    /// # Errors
    /// If there are more nodes, edges or strings than fit in 32 bits, or more type names than fit in 16 bits.
    pub fn finish(mut self) -> Result<HeapGraph, Error> {
        let rows = [self.edges.len(), self.locations.len(), self.attributes.len()];
        if self.is_full || rows.iter().any(|&rows| u32::try_from(rows).is_err()) {
            return Err(Error::new(
                ErrorKind::Limit,
                "heap graph",
                "too many nodes or edges: expected fewer than 2^32",
            ));
        }
        let nodes = self.node_types.len();
        sort_by_node(&mut self.locations);
        self.sort_attributes();
        let groups = canonical::groups(self.locations.iter().map(|row| (row.address, row.node)));
        self.node_types.shrink_to_fit();
        self.locations.shrink_to_fit();
        Ok(HeapGraph::new(
            self.strings.into_strings(),
            self.vocabulary,
            self.node_types,
            self.edges.into_rows(nodes),
            (self.locations, self.attributes, self.kinds),
            groups,
            (self.summary, self.totals, self.created),
        ))
    }

    /// Sorts attributes by node. Facts may come late, such as an array's count after its elements.
    fn sort_attributes(&mut self) {
        if self.attributes.is_sorted_by_key(|row| row.node) {
            self.attributes.shrink_to_fit();
            self.kinds.shrink_to_fit();
            return;
        }
        let mut rows: Vec<_> =
            mem::take(&mut self.attributes).into_iter().zip(mem::take(&mut self.kinds)).collect();
        rows.sort_by_key(|(row, _)| row.node);
        (self.attributes, self.kinds) = rows.into_iter().unzip();
    }

    const fn has(&self, node: NodeId) -> bool {
        (node.0 as usize) < self.node_types.len()
    }
}

fn sort_by_node(rows: &mut [LocationRow]) {
    if !rows.is_sorted_by_key(|row| row.node) {
        rows.sort_by_key(|row| row.node);
    }
}

impl HeapSink for Builder {
    #[inline]
    fn string(&mut self, string: &[u8]) -> StringId {
        let number = self.strings.intern(string);
        self.is_full |= number.is_none();
        StringId(number.unwrap_or_default())
    }

    #[inline]
    fn node(&mut self, node_type: NodeType) -> NodeId {
        match u32::try_from(self.node_types.len()) {
            Ok(number) if number < u32::MAX - 1 => {
                self.node_types.push(node_type);
                NodeId(number)
            }
            _ => {
                self.is_full = true;
                NodeId(0)
            }
        }
    }

    #[inline]
    fn edge(&mut self, edge: Edge) {
        if self.has(edge.child) && edge.parent.is_none_or(|parent| self.has(parent)) {
            let parent = edge.parent.map_or(u32::MAX, |parent| parent.0);
            self.edges.push(parent, edge.child.0, edge.link.0, flags(edge.is_tree, edge.strength));
        }
    }

    #[inline]
    fn location(&mut self, node: NodeId, location: &Location) {
        if self.has(node) {
            self.locations.push(LocationRow::new(node, location));
        }
    }

    fn attribute(&mut self, node: NodeId, key: StringId, value: Value<'_>) {
        match value {
            Value::Null => self.attribute_text(node, key, b"null", ValueKind::Null),
            Value::Bool(true) => self.attribute_text(node, key, b"1", ValueKind::Bool),
            Value::Bool(false) => self.attribute_text(node, key, b"", ValueKind::Bool),
            Value::Integer(number) => {
                let value = self.number(number);
                self.attribute_strings(node, key, value, ValueKind::Integer);
            }
            Value::Float(number) => {
                let (text, kind) = float_text(number);
                self.attribute_text(node, key, text.as_bytes(), kind);
            }
            Value::Text(text) => self.attribute_text(node, key, text, ValueKind::Text),
        }
    }

    fn summary(&mut self, key: &str, value: &str) {
        let fact = (self.string(key.as_bytes()), self.string(value.as_bytes()));
        self.summary.push(fact);
    }
}
