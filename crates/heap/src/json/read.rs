//! Reads reli's JSON.

use borehole_text::Error;
use hashbrown::{HashMap, HashSet};

use super::locations::{PACKED, facts, type_of};
use super::token::{Token, Tokens};
use super::{LOCATIONS, NODE_ID, REFERENCE, TYPE};
use crate::graph::{GraphBuilder, HeapGraph, MemoryTotal, Totals};
use crate::names::{NodeType, Strength};
use crate::sink::{Edge, HeapSink as _, MemoryLocation, NodeId, StringId, ValueKind};

/// Reads the JSON of reli's memory profiler.
///
/// The nodes keep the order of their numbers. JSON does not state the types and regions of locations: a type is
/// inferred from the node and the location's keys, and the totals are kept as read.
///
#[doc = crate::doc_graph::graph_example!(
    r#"use borehole_heap::json;

let mut file = Vec::new();
json::write(&graph, json::JsonLayout::Compact, &mut file)?;
assert_eq!(json::read(&file)?.counts().nodes, 2);"#
)]
/// # Errors
/// If the input is not JSON, or not in reli's format.
pub fn read(json: &[u8]) -> Result<HeapGraph, Error> {
    let mut reader = DocumentReader {
        tokens: Tokens::new(json),
        builder: GraphBuilder::new(),
        nodes: Vec::new(),
        edges: Vec::new(),
        locations: Vec::new(),
        attributes: Vec::new(),
        totals: Totals::default(),
    };
    reader.document()?;
    reader.finish()
}

struct DocumentReader<'a> {
    tokens: Tokens<'a>,
    builder: GraphBuilder,
    /// Number and type, in the order of the document.
    nodes: Vec<(u64, NodeType)>,
    edges: Vec<DocumentEdge>,
    locations: Vec<(usize, MemoryLocation)>,
    attributes: Vec<(usize, StringId, StringId, ValueKind)>,
    totals: Totals,
}

/// An edge. The parent is an index in `nodes`, the child a number of the document.
struct DocumentEdge {
    parent: Option<usize>,
    child: u64,
    link: StringId,
    is_tree: bool,
}

/// A node that is being read; `None` for the object that contains the roots.
struct OpenNode {
    node: Option<usize>,
    /// Whether none of its members has been read yet.
    is_first: bool,
    has_locations: bool,
}

/// The meaning of a member of a node.
enum Member {
    /// A new node, at this index.
    Node(usize),
    Done,
}

impl DocumentReader<'_> {
    fn document(&mut self) -> Result<(), Error> {
        self.tokens.expect(b'{')?;
        let mut is_first = true;
        let mut has_context = false;
        while let Some(key) = self.tokens.key(&mut is_first)? {
            match key.as_slice() {
                b"summary" => self.summary()?,
                b"location_types_summary" => self.totals.location_types = self.totals()?,
                b"class_objects_summary" => self.totals.classes = self.totals()?,
                b"context" => {
                    has_context = true;
                    self.context()?;
                }
                _ => self.tokens.skip()?,
            }
        }
        if has_context {
            return Ok(());
        }
        Err(self.tokens.wrong("missing context: expected the JSON of reli's memory profiler"))
    }

    fn summary(&mut self) -> Result<(), Error> {
        self.tokens.expect(b'[')?;
        let mut is_first = true;
        while self.tokens.entry(&mut is_first)? {
            if self.tokens.peek()? != b'{' {
                self.tokens.skip()?;
                continue;
            }
            self.tokens.expect(b'{')?;
            let mut is_first_key = true;
            while let Some(key) = self.tokens.key(&mut is_first_key)? {
                let (value, kind) = self.value()?;
                let value: &[u8] = match (kind, value.as_slice()) {
                    (ValueKind::Bool, b"") => b"false",
                    (ValueKind::Bool, _) => b"true",
                    (_, value) => value,
                };
                let fact = (self.builder.string(&key), self.builder.string(value));
                self.builder.summary_strings(fact.0, fact.1);
            }
        }
        Ok(())
    }

    /// Reads totals. PHP writes an empty object as a list.
    fn totals(&mut self) -> Result<Vec<MemoryTotal>, Error> {
        let mut totals = Vec::new();
        if self.tokens.peek()? == b'[' {
            self.tokens.skip()?;
            return Ok(totals);
        }
        self.tokens.expect(b'{')?;
        let mut is_first = true;
        while let Some(name) = self.tokens.key(&mut is_first)? {
            let mut total = MemoryTotal { name, count: 0, memory_usage: 0 };
            self.tokens.expect(b'{')?;
            let mut is_first_key = true;
            while let Some(key) = self.tokens.key(&mut is_first_key)? {
                match key.as_slice() {
                    b"count" => total.count = self.number()?,
                    b"memory_usage" | b"total_size" => total.memory_usage = self.number()?,
                    _ => self.tokens.skip()?,
                }
            }
            totals.push(total);
        }
        Ok(totals)
    }

    /// Reads the tree. An explicit stack has the nodes on the current path, because trees are deep.
    fn context(&mut self) -> Result<(), Error> {
        if self.tokens.peek()? == b'[' {
            return self.tokens.skip();
        }
        self.tokens.expect(b'{')?;
        let mut path = vec![OpenNode { node: None, is_first: true, has_locations: false }];
        while let Some(OpenNode { node, is_first, has_locations }) = path.last_mut() {
            let node = *node;
            let Some(key) = self.tokens.key(is_first)? else {
                path.pop();
                continue;
            };
            // An array element may have the same key: then it is an object, not a list.
            let is_locations = key == LOCATIONS.as_bytes() && self.tokens.peek()? == b'[';
            if is_locations && std::mem::replace(has_locations, true) {
                return Err(self.tokens.wrong(format!("duplicate {LOCATIONS} of a node")));
            }
            if let Member::Node(child) = self.member(node, &key)? {
                path.push(OpenNode { node: Some(child), is_first: false, has_locations: false });
            }
        }
        Ok(())
    }

    /// Reads the member `key` of `node`.
    fn member(&mut self, node: Option<usize>, key: &[u8]) -> Result<Member, Error> {
        match (self.tokens.peek()?, node) {
            (b'{', _) => self.child(node, key),
            (b'[', Some(node)) if key == LOCATIONS.as_bytes() => self.locations(node).map(|()| Member::Done),
            (_, Some(node)) => {
                let (value, kind) = self.value()?;
                let (key, value) = (self.builder.string(key), self.builder.string(&value));
                self.attributes.push((node, key, value, kind));
                Ok(Member::Done)
            }
            (_, None) => Err(self.tokens.wrong("expected a node")),
        }
    }

    fn child(&mut self, parent: Option<usize>, link: &[u8]) -> Result<Member, Error> {
        self.tokens.expect(b'{')?;
        let link = self.builder.string(link);
        let mut is_first = true;
        let key = self.tokens.key(&mut is_first)?.unwrap_or_default();
        if key == REFERENCE.as_bytes() {
            let child = self.number()?;
            self.tokens.expect(b'}')?;
            self.edges.push(DocumentEdge { parent, child, link, is_tree: false });
            return Ok(Member::Done);
        }
        if key != NODE_ID.as_bytes() {
            return Err(self.tokens.wrong(format!("expected {NODE_ID} or {REFERENCE} first")));
        }
        let number = self.number()?;
        if self.tokens.key(&mut is_first)?.unwrap_or_default() != TYPE.as_bytes() {
            return Err(self.tokens.wrong(format!("expected {TYPE} after {NODE_ID}")));
        }
        let Token::String(name) = self.tokens.next()? else {
            return Err(self.tokens.wrong(format!("expected a string as {TYPE}")));
        };
        let node_type = self.builder.node_type(&name);
        self.edges.push(DocumentEdge { parent, child: number, link, is_tree: true });
        self.nodes.push((number, node_type));
        Ok(Member::Node(self.nodes.len() - 1))
    }

    fn number(&mut self) -> Result<u64, Error> {
        if let Token::Number(text) = self.tokens.next()? {
            let number = std::str::from_utf8(text).ok().and_then(|text| text.parse().ok());
            return number.ok_or_else(|| self.tokens.wrong("expected a whole number"));
        }
        Err(self.tokens.wrong("expected a number"))
    }

    /// Reads a value that is not a node, as text.
    fn value(&mut self) -> Result<(Vec<u8>, ValueKind), Error> {
        self.tokens.peek()?;
        let start = self.tokens.offset();
        if matches!(self.tokens.peek()?, b'[' | b'{') {
            self.tokens.skip()?;
            let value: serde_json::Value = serde_json::from_slice(self.tokens.since(start))
                .map_err(|error| self.tokens.wrong(error.to_string()))?;
            return Ok((value.to_string().into_bytes(), ValueKind::Json));
        }
        Ok(match self.tokens.next()? {
            Token::String(text) => (text, ValueKind::Text),
            Token::Bool(true) => (b"1".to_vec(), ValueKind::Bool),
            Token::Bool(false) => (Vec::new(), ValueKind::Bool),
            Token::Number(text) if text.iter().any(|byte| matches!(byte, b'.' | b'e' | b'E')) => {
                (text.to_vec(), ValueKind::Float)
            }
            Token::Number(text) => (text.to_vec(), ValueKind::Integer),
            _ => (b"null".to_vec(), ValueKind::Null),
        })
    }

    fn locations(&mut self, node: usize) -> Result<(), Error> {
        self.tokens.expect(b'[')?;
        let own = self.attributes.iter().rev().take_while(|known| known.0 == node);
        let mut known: HashSet<StringId> = own.map(|known| known.1).collect();
        let mut is_first = true;
        while self.tokens.entry(&mut is_first)? {
            self.location(node, &mut known)?;
        }
        Ok(())
    }

    /// Reads a location. `known` are the keys of the node's facts so far.
    fn location(&mut self, node: usize, known: &mut HashSet<StringId>) -> Result<(), Error> {
        let mut location = crate::graph::NO_LOCATION;
        let mut keys = Vec::new();
        let mut said = Vec::new();
        self.tokens.expect(b'{')?;
        let mut is_first = true;
        while let Some(key) = self.tokens.key(&mut is_first)? {
            match key.as_slice() {
                b"address" => location.address = self.number()?,
                b"size" => location.size = self.number()?,
                b"refcount" => location.refcount = Some(self.small_number()?),
                b"type_info" => location.type_info = Some(self.small_number()?),
                b"class_name" => location.class = Some(self.text()?),
                b"value" => location.string = Some(self.text()?),
                // A fact in a location belongs to the node, which may have several locations.
                key if key == LOCATIONS.as_bytes() => {
                    return Err(self
                        .tokens
                        .wrong(format!("expected a fact about a location, found {LOCATIONS}")));
                }
                // It is that of the elements beside it.
                b"used_location" => self.tokens.skip()?,
                _ => {
                    let (value, kind) = self.value()?;
                    let is_default = key == PACKED.as_bytes() && kind == ValueKind::Bool && value.is_empty();
                    if !is_default {
                        said.push((self.builder.string(&key), self.builder.string(&value), kind));
                    }
                }
            }
            keys.push(String::from_utf8_lossy(&key).into_owned());
        }
        let node_type = self.nodes.get(node).map_or(NodeType::new(u16::MAX), |&(_, node_type)| node_type);
        let found = type_of(&keys, node_type);
        location.location_type = found.unwrap_or_else(|| self.builder.location_type(UNKNOWN_LOCATION));
        if !facts(location.location_type).is_empty() {
            // A fact that several locations state is added to their node once.
            let new = said.into_iter().filter(|&(key, ..)| known.insert(key));
            self.attributes.extend(new.map(|(key, value, kind)| (node, key, value, kind)));
        }
        self.locations.push((node, location));
        Ok(())
    }

    fn small_number(&mut self) -> Result<u32, Error> {
        let number = self.number()?;
        u32::try_from(number).map_err(|_| {
            self.tokens.wrong(format!("number too large: expected at most 4294967295, found {number}"))
        })
    }

    fn text(&mut self) -> Result<StringId, Error> {
        match self.tokens.next()? {
            Token::String(text) => Ok(self.builder.string(&text)),
            _ => Err(self.tokens.wrong("expected a string")),
        }
    }

    /// Assigns the nodes their numbers, and builds the graph.
    fn finish(mut self) -> Result<HeapGraph, Error> {
        let mut order: Vec<usize> = (0..self.nodes.len()).collect();
        order.sort_by_key(|&place| self.nodes[place].0);
        let mut by_number = HashMap::with_capacity(order.len());
        let mut by_place = vec![NodeId(0); order.len()];
        for place in order {
            let (number, node_type) = self.nodes[place];
            let node = self.builder.node(node_type);
            by_place[place] = node;
            if by_number.insert(number, node).is_some() {
                return Err(self.tokens.wrong(format!("duplicate node {number}")));
            }
        }
        for edge in &self.edges {
            let Some(&child) = by_number.get(&edge.child) else {
                return Err(self
                    .tokens
                    .wrong(format!("missing node {}: a reference leads to it", edge.child)));
            };
            let parent = edge.parent.map(|place| by_place[place]);
            let parent_type = edge.parent.map(|place| self.nodes[place].1);
            let strength = strength(parent_type, edge.link, &mut self.builder);
            self.builder.edge(Edge { parent, child, link: edge.link, is_tree: edge.is_tree, strength });
        }
        for (place, location) in &self.locations {
            self.builder.location(by_place[*place], location);
        }
        for &(place, key, value, kind) in &self.attributes {
            self.builder.attribute_strings(by_place[place], key, value, kind);
        }
        self.builder.set_totals(self.totals);
        self.builder.finish()
    }
}

/// The type of a location that cannot be inferred.
const UNKNOWN_LOCATION: &[u8] = b"MemoryLocation";

/// JSON does not state the strength. Source: reli's database document: the store of objects holds them weakly, and
/// objects hold their handlers, and classes their entries, structurally. The table of resources is like the store of objects.
fn strength(parent: Option<NodeType>, link: StringId, builder: &mut GraphBuilder) -> Strength {
    let is_structural =
        ["object_handlers", "class_entry"].iter().any(|name| builder.string(name.as_bytes()) == link);
    match parent {
        Some(NodeType::OBJECTS_STORE | NodeType::REGULAR_LIST) => Strength::Weak,
        Some(_) if is_structural => Strength::Structural,
        _ => Strength::Strong,
    }
}
