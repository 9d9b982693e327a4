//! Builds a graph.

use borehole_text::{Error, ErrorKind, IntegerDigits, Position};
use hashbrown::HashMap;

use super::column::GraphStorage;
use super::columns::{HeapGraph, flags};
use super::gathered::{GatheredAttributes, GatheredEdges, GatheredLocations};
use super::locations::LocationRow;
use super::rows::NodeRows;
use super::strings::StringInterner;
use super::{HeapFacts, NodeAttribute, Totals, Vocabulary, canonical};
use crate::names::{LocationType, NodeType, Region};
use crate::number::float_text;
use crate::sink::{AttributeValue, Edge, HeapSink, MemoryLocation, NodeId, StringId, ValueKind};

/// Receives a heap as it is walked, and builds a [`HeapGraph`].
#[doc = crate::doc_graph::graph_example!(
    r#"// The graph of all examples is made like this.
let mut builder = GraphBuilder::new();
let link = builder.string(b"answer");
let child = builder.node(NodeType::STRING);
builder.edge(Edge { parent: None, child, link, is_tree: true, strength: Strength::Strong });
builder.location(child, &MemoryLocation::new(LocationType::STRING, 0x1000, 32));
assert_eq!(builder.finish()?.counts().nodes, 1);"#
)]
#[derive(Debug)]
pub struct GraphBuilder {
    strings: StringInterner,
    vocabulary: Vocabulary,
    /// The numbers of names unknown to this version, by string and list.
    newer: HashMap<(NameList, u32), u16>,
    node_types: Vec<NodeType>,
    edges: GatheredEdges,
    locations: GatheredLocations,
    attributes: GatheredAttributes,
    facts: HeapFacts,
    is_full: bool,
}

/// A list of the vocabulary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum NameList {
    Nodes,
    Locations,
    Regions,
}

impl Default for GraphBuilder {
    fn default() -> Self {
        Self::new()
    }
}

impl GraphBuilder {
    /// Creates a builder without nodes.
    #[must_use]
    pub fn new() -> Self {
        let mut strings = StringInterner::default();
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
            vocabulary,
            newer: HashMap::new(),
            node_types: Vec::new(),
            edges: GatheredEdges::default(),
            locations: GatheredLocations::default(),
            attributes: GatheredAttributes::default(),
            facts: HeapFacts::default(),
            is_full: false,
        }
    }

    /// Sets the time of the snapshot, in ISO 8601.
    pub fn set_created(&mut self, created: &str) {
        created.clone_into(&mut self.facts.created);
    }

    /// Sets the totals counted by the program that walked the heap.
    pub fn set_totals(&mut self, totals: Totals) {
        self.facts.totals = Some(totals);
    }

    /// The node type with this name; an unknown name gets a new number.
    pub fn node_type(&mut self, name: &[u8]) -> NodeType {
        NodeType::new(self.named(NameList::Nodes, name))
    }

    /// The location type with this name; an unknown name gets a new number.
    pub fn location_type(&mut self, name: &[u8]) -> LocationType {
        LocationType::new(self.named(NameList::Locations, name))
    }

    /// The region with this name; an unknown name gets a new number.
    pub fn region(&mut self, name: &[u8]) -> Region {
        Region::new(self.named(NameList::Regions, name))
    }

    fn named(&mut self, list: NameList, name: &[u8]) -> u16 {
        let string = self.string(name);
        let names = match list {
            NameList::Nodes => &mut self.vocabulary.node_types,
            NameList::Locations => &mut self.vocabulary.location_types,
            NameList::Regions => &mut self.vocabulary.regions,
        };
        let known = match list {
            NameList::Nodes => NodeType::NAMES.len(),
            NameList::Locations => LocationType::NAMES.len(),
            NameList::Regions => Region::NAMES.len(),
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
            self.attributes.push(node, NodeAttribute { key, value, kind });
        }
    }

    /// Adds a fact about the whole heap, with interned strings.
    pub(crate) fn summary_strings(&mut self, key: StringId, value: StringId) {
        self.facts.summary.push((key, value));
    }

    /// Builds the graph.
    ///
    /// # Errors
    /// If there are more nodes, edges or strings than fit in 32 bits, or more type names than fit in 16 bits.
    pub fn finish(self) -> Result<HeapGraph, Error> {
        self.finish_as(GraphStorage::Plain)
    }

    /// Builds the graph with columns that are stored like this.
    ///
    /// # Errors
    /// As [`Self::finish`].
    pub fn finish_as(mut self, storage: GraphStorage) -> Result<HeapGraph, Error> {
        let rows = [self.edges.len(), self.locations.len(), self.attributes.len()];
        if self.is_full || rows.iter().any(|&rows| u32::try_from(rows).is_err()) {
            return Err(Error::new(
                ErrorKind::Limit,
                "heap graph",
                Position::Whole,
                "too many nodes or edges: expected fewer than 2^32",
            ));
        }
        let nodes = self.node_types.len();
        self.node_types.shrink_to_fit();
        // One after the other, so that each part is freed before the next is unpacked.
        let strings = self.strings.into_strings();
        let edges = self.edges.into_rows(nodes, storage);
        let attributes = self.attributes.into_columns(storage);
        let locations = self.locations.into_columns(storage);
        let groups = canonical::groups(locations.places());
        Ok(HeapGraph {
            strings,
            vocabulary: self.vocabulary,
            edges,
            location_rows: NodeRows::of(locations.nodes(), nodes),
            locations,
            attribute_rows: attributes.node_rows(nodes),
            attributes,
            node_types: self.node_types,
            groups,
            facts: self.facts,
        })
    }

    const fn has(&self, node: NodeId) -> bool {
        (node.0 as usize) < self.node_types.len()
    }
}

impl HeapSink for GraphBuilder {
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
    fn location(&mut self, node: NodeId, location: &MemoryLocation) {
        if self.has(node) {
            self.locations.push(&LocationRow::new(node, location));
        }
    }

    fn attribute(&mut self, node: NodeId, key: StringId, value: AttributeValue<'_>) {
        match value {
            AttributeValue::Null => self.attribute_text(node, key, b"null", ValueKind::Null),
            AttributeValue::Bool(true) => self.attribute_text(node, key, b"1", ValueKind::Bool),
            AttributeValue::Bool(false) => self.attribute_text(node, key, b"", ValueKind::Bool),
            AttributeValue::Integer(number) => {
                let value = self.string(IntegerDigits::of(number).text());
                self.attribute_strings(node, key, value, ValueKind::Integer);
            }
            AttributeValue::Float(number) => {
                let (text, kind) = float_text(number);
                self.attribute_text(node, key, text.as_bytes(), kind);
            }
            AttributeValue::Text(text) => self.attribute_text(node, key, text, ValueKind::Text),
        }
    }

    fn summary(&mut self, key: &str, value: &str) {
        let fact = (self.string(key.as_bytes()), self.string(value.as_bytes()));
        self.facts.summary.push(fact);
    }
}
