//! Writes `.rmem` files.

use std::io::{self, Write};

use super::layout::*;
use crate::graph::{Graph, MemoryTotal, NodeRows, STRINGS_STRIDE, children, nodes, parents, strings};
use crate::names::Strength;
use crate::sink::{MemoryLocation, NodeId, StringId, ValueKind};

/// Writes `graph` as an `.rmem` file. Only the indexes are in memory: the rows are streamed.
///
#[doc = crate::doc_graph::graph_example!(
    r#"use borehole_heap::rmem;

let mut file = Vec::new();
rmem::write(&graph, &mut file)?;
assert_eq!(rmem::MappedGraph::open(&file)?.counts().nodes, 2);"#
)]
/// # Errors
/// The errors of writing `output`.
pub fn write(graph: &impl Graph, output: impl Write) -> io::Result<()> {
    File::new(graph).write(output)
}

/// The sections, whose sizes are known before their content.
struct File<'a, G> {
    graph: &'a G,
    strings_bytes: u64,
    string_starts: Vec<u64>,
    edge_starts: NodeRows,
    location_starts: NodeRows,
    attribute_starts: NodeRows,
    zero_group: Vec<u32>,
    totals: Vec<u8>,
}

struct SectionSize {
    name: &'static str,
    bytes: u64,
    elements: u64,
}

/// Buffers rows into large writes.
struct Rowwise<W> {
    output: W,
    piece: Vec<u8>,
}

const PIECE_BYTES: usize = 1 << 18;

impl<W: Write> Rowwise<W> {
    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.piece.extend_from_slice(bytes);
        if self.piece.len() >= PIECE_BYTES { self.flush() } else { Ok(()) }
    }

    fn words(&mut self, words: impl IntoIterator<Item = u32>) -> io::Result<()> {
        words.into_iter().try_for_each(|word| self.put(&word.to_le_bytes()))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.output.write_all(&self.piece)?;
        self.piece.clear();
        Ok(())
    }
}

impl<'a, G: Graph> File<'a, G> {
    fn new(graph: &'a G) -> Self {
        let counts = graph.counts();
        let (string_starts, strings_bytes) = string_starts(graph);
        let starts = |count: usize, node_of: fn(&G, usize) -> NodeId| {
            let last = u32::try_from(counts.nodes).unwrap_or(u32::MAX);
            NodeRows::of((0..count).map(|row| node_of(graph, row).0.min(last)), counts.nodes)
        };
        let keys = parents(graph).flat_map(|parent| children(graph, parent).map(move |_| key(parent)));
        let is_zero = |node: &NodeId| graph.canonical(*node) == Some(NodeId(0));
        Self {
            graph,
            strings_bytes,
            string_starts,
            edge_starts: NodeRows::of(keys, counts.nodes + 1),
            location_starts: starts(counts.locations, G::location_node),
            attribute_starts: starts(counts.attributes, G::attribute_node),
            zero_group: match graph.canonical(NodeId(0)) {
                Some(_) => nodes(counts.nodes).filter(is_zero).map(|node| node.0).collect(),
                None => Vec::new(),
            },
            totals: encode_totals(graph),
        }
    }

    fn sections(&self) -> Vec<SectionSize> {
        let counts = self.graph.counts();
        let rows = |name, count: usize, width: usize| {
            let count = count as u64;
            SectionSize { name, bytes: count.saturating_mul(width as u64), elements: count }
        };
        let facts = self.graph.summary().len();
        let names = self.names().len();
        vec![
            SectionSize { name: STRINGS, bytes: self.strings_bytes, elements: counts.strings as u64 },
            rows(NODES, counts.nodes, NODE_BYTES),
            rows(EDGES, self.edge_starts.row_count(), EDGE_BYTES),
            rows(LOCATIONS, counts.locations, LOCATION_BYTES),
            rows(ATTRIBUTES, counts.attributes, ATTRIBUTE_BYTES),
            SectionSize { name: SUMMARY, bytes: (4 + facts * FACT_BYTES) as u64, elements: facts as u64 },
            SectionSize { name: RUNS, bytes: (8 + self.graph.created().len()) as u64, elements: 1 },
            rows(OURS, names, 4),
            rows(STRING_STARTS, self.string_starts.len(), 8),
            rows(EDGE_STARTS, self.edge_starts.starts().len(), 4),
            rows(LOCATION_STARTS, self.location_starts.starts().len(), 4),
            rows(ATTRIBUTE_STARTS, self.attribute_starts.starts().len(), 4),
            rows(KINDS, counts.attributes, 1),
            rows(ZERO_GROUP, self.zero_group.len(), 4),
            rows(TOTALS, self.totals.len(), 1),
        ]
    }

    fn write(&self, output: impl Write) -> io::Result<()> {
        let sections = self.sections();
        let mut out = Rowwise { output, piece: Vec::with_capacity(PIECE_BYTES * 2) };
        let toc = HEADER_BYTES as u64 + sections.iter().map(|section| section.bytes).sum::<u64>();
        self.header(&mut out, sections.len(), toc)?;
        self.strings(&mut out)?;
        self.nodes(&mut out)?;
        self.edges(&mut out)?;
        self.locations(&mut out)?;
        self.attributes(&mut out)?;
        self.facts(&mut out)?;
        self.ours(&mut out)?;
        let mut offset = HEADER_BYTES as u64;
        for section in &sections {
            let mut name = [0; NAME_BYTES];
            name[..section.name.len()].copy_from_slice(section.name.as_bytes());
            out.put(&name)?;
            for number in [offset, section.bytes, section.elements] {
                out.put(&number.to_le_bytes())?;
            }
            offset += section.bytes;
        }
        out.flush()?;
        out.output.flush()
    }

    fn header(&self, out: &mut Rowwise<impl Write>, sections: usize, toc: u64) -> io::Result<()> {
        let sections = u32::try_from(sections).expect("sections are few");
        out.put(&MAGIC)?;
        out.words([VERSION, LITTLE_ENDIAN, sections])?;
        out.put(&toc.to_le_bytes())?;
        out.put(&[0; HEADER_BYTES - 24])
    }

    fn strings(&self, out: &mut Rowwise<impl Write>) -> io::Result<()> {
        out.words([count(self.graph.counts().strings)])?;
        for string in strings(self.graph).map(|string| self.graph.string(string)) {
            out.words([count(string.len())])?;
            out.put(string)?;
        }
        Ok(())
    }

    fn nodes(&self, out: &mut Rowwise<impl Write>) -> io::Result<()> {
        let types = &self.graph.vocabulary().node_types;
        for node in nodes(self.graph.counts().nodes) {
            let canonical = self.graph.canonical(node).map_or(0, |node| node.0);
            let name = number_of(types, self.graph.node_type(node).number());
            // The column in which newer readers expect a class is empty: they then use that of the locations.
            let row = row::<4, NODE_BYTES>([node.0, canonical, name, NULL]);
            out.put(&row)?;
        }
        Ok(())
    }

    fn edges(&self, out: &mut Rowwise<impl Write>) -> io::Result<()> {
        for parent in parents(self.graph) {
            for child in children(self.graph, parent) {
                let strength = match child.strength {
                    Strength::Strong => 0,
                    Strength::Weak => 1,
                    Strength::Structural => 2,
                };
                let flags = u32::from_le_bytes([u8::from(child.is_tree), strength, 0, 0]);
                let parent = parent.map_or(NULL, |parent| parent.0);
                out.put(&row::<4, EDGE_BYTES>([parent, child.node.0, child.link.0, flags]))?;
            }
        }
        Ok(())
    }

    fn locations(&self, out: &mut Rowwise<impl Write>) -> io::Result<()> {
        for row in 0..self.graph.counts().locations {
            let node = self.graph.location_node(row);
            out.put(&self.location(node, &self.graph.location(row)))?;
        }
        Ok(())
    }

    fn location(&self, node: NodeId, location: &MemoryLocation) -> [u8; LOCATION_BYTES] {
        let vocabulary = self.graph.vocabulary();
        let string = |string: Option<StringId>| string.map_or(NULL, |string| string.0);
        let region = location.region.map(|region| number_of(&vocabulary.regions, region.number()));
        let location_type = number_of(&vocabulary.location_types, location.location_type.number());
        let (low, high) = (halves(location.address), halves(location.size));
        row::<12, LOCATION_BYTES>([
            node.0,
            location_type,
            string(location.class),
            low.0,
            low.1,
            high.0,
            high.1,
            string(location.string),
            location.refcount.unwrap_or_default(),
            location.type_info.unwrap_or_default(),
            region.unwrap_or(NULL),
            location.bin_overhead,
        ])
    }

    fn attributes(&self, out: &mut Rowwise<impl Write>) -> io::Result<()> {
        for row_number in 0..self.graph.counts().attributes {
            let (node, found) = (self.graph.attribute_node(row_number), self.graph.attribute(row_number));
            out.put(&row::<3, ATTRIBUTE_BYTES>([node.0, found.key.0, found.value.0]))?;
        }
        Ok(())
    }

    fn facts(&self, out: &mut Rowwise<impl Write>) -> io::Result<()> {
        let facts = self.graph.summary();
        out.words([count(facts.len())])?;
        out.words(facts.iter().flat_map(|(key, value)| [key.0, value.0]))?;
        let created = self.graph.created();
        out.words([1, count(created.len())])?;
        out.put(created.as_bytes())
    }

    /// The version of our sections, then each list of names preceded by its length.
    fn names(&self) -> Vec<u32> {
        let vocabulary = self.graph.vocabulary();
        let mut words = vec![OURS_VERSION];
        for list in [&vocabulary.node_types, &vocabulary.location_types, &vocabulary.regions] {
            words.push(count(list.len()));
            words.extend(list.iter().map(|name| name.0));
        }
        words
    }

    fn ours(&self, out: &mut Rowwise<impl Write>) -> io::Result<()> {
        out.words(self.names())?;
        self.string_starts.iter().try_for_each(|start| out.put(&start.to_le_bytes()))?;
        for starts in [&self.edge_starts, &self.location_starts, &self.attribute_starts] {
            out.words(starts.starts().iter().copied())?;
        }
        for row in 0..self.graph.counts().attributes {
            out.put(&[kind_number(self.graph.attribute(row).kind)])?;
        }
        out.words(self.zero_group.iter().copied())?;
        out.put(&self.totals)
    }
}

/// The start of every sixteenth string in the section, and the length of the section.
fn string_starts(graph: &impl Graph) -> (Vec<u64>, u64) {
    let mut starts = Vec::new();
    let mut offset = 4;
    for (number, string) in strings(graph).enumerate() {
        if number.is_multiple_of(STRINGS_STRIDE) {
            starts.push(offset);
        }
        offset += 4 + graph.string(string).len() as u64;
    }
    (starts, offset)
}

/// Two lists, each preceded by its length. An entry is the name with its length, the count, and the bytes.
fn encode_totals(graph: &impl Graph) -> Vec<u8> {
    let Some(totals) = graph.totals() else { return Vec::new() };
    let mut bytes = Vec::new();
    for list in [&totals.location_types, &totals.classes] {
        bytes.extend_from_slice(&count(list.len()).to_le_bytes());
        for MemoryTotal { name, count: how_many, memory_usage } in list {
            bytes.extend_from_slice(&count(name.len()).to_le_bytes());
            bytes.extend_from_slice(name);
            bytes.extend_from_slice(&how_many.to_le_bytes());
            bytes.extend_from_slice(&memory_usage.to_le_bytes());
        }
    }
    bytes
}

/// The sort key of a parent: the roots come first.
pub(super) fn key(parent: Option<NodeId>) -> u32 {
    parent.map_or(0, |parent| parent.0.saturating_add(1))
}

pub(super) const fn kind_number(kind: ValueKind) -> u8 {
    match kind {
        ValueKind::Null => 0,
        ValueKind::Bool => 1,
        ValueKind::Integer => 2,
        ValueKind::Float => 3,
        ValueKind::Text => 4,
        ValueKind::Json => 5,
    }
}

fn row<const WORDS: usize, const BYTES: usize>(words: [u32; WORDS]) -> [u8; BYTES] {
    let mut row = [0; BYTES];
    for (place, word) in row.chunks_exact_mut(4).zip(words) {
        place.copy_from_slice(&word.to_le_bytes());
    }
    row
}

const fn halves(number: u64) -> (u32, u32) {
    ((number & 0xffff_ffff) as u32, (number >> 32) as u32)
}

fn number_of(names: &[StringId], number: u16) -> u32 {
    names.get(usize::from(number)).map_or(NULL, |name| name.0)
}

/// A graph has at most 2^32 items of each kind.
fn count(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
