//! Reads `.rmem` files in place.

use std::ops::Range;

use borehole_text::Error;
use borehole_wire::Cursor;
use hashbrown::HashMap;

use super::index::{OrderedTable, StringSection};
use super::layout::*;
use super::sections::{FileSections, RowTable, SectionBytes, long, malformed, too_many, truncated, word};
use crate::graph::{
    CanonicalGroups, Child, Graph, GraphCounts, HeapFacts, MemoryTotal, NodeAttribute, Totals, Vocabulary,
    groups,
};
use crate::names::{LocationType, NodeType, Region, Strength};
use crate::sink::{MemoryLocation, NodeId, StringId, ValueKind};

/// A file as a graph, read in place.
///
/// Opening a file of ours reads only its table of contents and its lists of names, so it takes the same time for any
/// size. For a file of another writer, the missing indexes are computed. Rows are not checked before they are read;
/// [`MappedGraph::check`] checks all of them.
#[doc = crate::doc_graph::graph_example!(
    r#"use borehole_heap::rmem::{self, MappedGraph};

let mut file = Vec::new();
rmem::write(&graph, &mut file)?;
let mapped = MappedGraph::open(&file)?;
assert_eq!(mapped.node_type(object), NodeType::OBJECT);"#
)]
#[derive(Debug)]
pub struct MappedGraph<'a> {
    pub(super) strings: StringSection<'a>,
    pub(super) nodes: RowTable<'a, NODE_BYTES>,
    /// The row of each node; `None` if the rows are in the order of node numbers.
    pub(super) node_rows: Option<Vec<u32>>,
    pub(super) edges: OrderedTable<'a, EDGE_BYTES>,
    pub(super) locations: OrderedTable<'a, LOCATION_BYTES>,
    pub(super) attributes: OrderedTable<'a, ATTRIBUTE_BYTES>,
    kinds: Option<&'a [u8]>,
    canonical: Canonical<'a>,
    vocabulary: Vocabulary,
    numbers: NameNumbers,
    pub(super) facts: HeapFacts,
}

/// The groups that the nodes' rows do not contain.
#[derive(Debug)]
enum Canonical<'a> {
    /// The rows contain the groups; only those of node 0's group are here.
    Stored(RowTable<'a, 4>),
    /// The rows contain no groups.
    Made(CanonicalGroups),
}

/// The numbers of types by the strings of their names.
#[derive(Debug, Default)]
struct NameNumbers {
    node_types: HashMap<u32, u16>,
    location_types: HashMap<u32, u16>,
    regions: HashMap<u32, u16>,
}

impl<'a> MappedGraph<'a> {
    /// Opens the file in `bytes`, mapped or in memory.
    ///
    /// # Errors
    /// If it is not an `.rmem` file, has another version, or is truncated; if sections are missing, or their sizes do
    /// not match their rows.
    pub fn open(bytes: &'a [u8]) -> Result<Self, Error> {
        let sections = FileSections::of(bytes)?;
        let ours = sections.find(OURS)?.filter(|ours| word(ours.bytes, 0) == OURS_VERSION);
        let is_ours = ours.is_some();
        let starts = if is_ours { Some(sections.table(STRING_STARTS)?) } else { None };
        let strings = StringSection::of(sections.require(STRINGS)?, starts)?;
        let nodes = sections.require(NODES)?.table(NODES)?;
        let edges = sections.require(EDGES)?.table(EDGES)?;
        let (locations, attributes) = (sections.table(LOCATIONS)?, sections.table(ATTRIBUTES)?);
        let node_rows = if is_ours { None } else { node_rows(nodes)? };
        let count = node_rows.as_ref().map_or(nodes.len(), Vec::len);
        let mut view = Self {
            strings,
            nodes,
            node_rows,
            edges: ordered(&sections, is_ours, EDGE_STARTS, edges, count + 1, ROOTS_FIRST)?,
            locations: ordered(&sections, is_ours, LOCATION_STARTS, locations, count, 0)?,
            attributes: ordered(&sections, is_ours, ATTRIBUTE_STARTS, attributes, count, 0)?,
            kinds: sections.find(KINDS)?.map(|section| section.bytes),
            canonical: Canonical::Stored(sections.table(ZERO_GROUP)?),
            vocabulary: Vocabulary::default(),
            numbers: NameNumbers::default(),
            facts: HeapFacts {
                summary: read_summary(&sections)?,
                totals: read_totals(&sections)?,
                created: read_created(&sections)?,
            },
        };
        match ours {
            Some(ours) => view.read_names(ours)?,
            None => view.find_names(),
        }
        Ok(view)
    }

    fn read_names(&mut self, section: SectionBytes<'a>) -> Result<(), Error> {
        let mut cursor = Cursor::new(section.bytes, section.offset);
        cursor.u32_le().map_err(truncated)?;
        let lists = [
            (&mut self.vocabulary.node_types, &mut self.numbers.node_types),
            (&mut self.vocabulary.location_types, &mut self.numbers.location_types),
            (&mut self.vocabulary.regions, &mut self.numbers.regions),
        ];
        for (names, numbers) in lists {
            for _ in 0..cursor.u32_le().map_err(truncated)? {
                let name = cursor.u32_le().map_err(truncated)?;
                let number = u16::try_from(names.len()).map_err(|_| {
                    let message = "too many names: expected at most 65535".to_owned();
                    too_many(message, cursor.offset())
                })?;
                numbers.entry(name).or_insert(number);
                names.push(StringId(name));
            }
        }
        Ok(())
    }

    /// Assigns numbers to the type names in the rows of another writer's file: this version's numbers to the names it knows.
    fn find_names(&mut self) {
        let names = |table: &mut dyn Iterator<Item = u32>, known: &[&str]| {
            let mut used: Vec<u32> = Vec::new();
            let mut seen: HashMap<u32, ()> = HashMap::new();
            used.extend(table.filter(|&name| name != NULL && seen.insert(name, ()).is_none()));
            number_names(&self.strings, &used, known)
        };
        let types = names(&mut self.nodes.rows().map(|row| word(row, 2)), NodeType::NAMES);
        let locations = names(&mut self.locations.table.rows().map(|row| word(row, 1)), LocationType::NAMES);
        let regions = names(&mut self.locations.table.rows().map(|row| word(row, 10)), Region::NAMES);
        (self.vocabulary.node_types, self.numbers.node_types) = types;
        (self.vocabulary.location_types, self.numbers.location_types) = locations;
        (self.vocabulary.regions, self.numbers.regions) = regions;
        if self.nodes.rows().all(|row| matches!(word(row, 1), 0 | NULL)) {
            let pairs = self.locations.table.rows().map(|row| (long(row, 3), word(row, 0)));
            self.canonical = Canonical::Made(groups(pairs));
        }
    }

    /// The stored group of node 0.
    pub(super) fn zero_group(&self) -> RowTable<'a, 4> {
        match self.canonical {
            Canonical::Stored(zero) => zero,
            Canonical::Made(_) => RowTable::EMPTY,
        }
    }

    pub(super) fn node_count(&self) -> usize {
        self.node_rows.as_ref().map_or(self.nodes.len(), Vec::len)
    }

    fn node_row(&self, node: NodeId) -> usize {
        match &self.node_rows {
            None => node.0 as usize,
            Some(rows) => rows.get(node.0 as usize).map_or(usize::MAX, |&row| row as usize),
        }
    }
}

/// The row of each node, if node numbers differ from row numbers. Numbers may have gaps, but their range is limited by
/// the number of rows.
fn node_rows(nodes: RowTable<'_, NODE_BYTES>) -> Result<Option<Vec<u32>>, Error> {
    let numbers = || nodes.rows().map(first_word);
    if numbers().enumerate().all(|(row, number)| row == number as usize) {
        return Ok(None);
    }
    let mut rows = Vec::new();
    for (row, number) in numbers().enumerate() {
        let number = number as usize;
        if number >= nodes.len().saturating_mul(2) {
            let message =
                format!("node number too large: expected less than {}, found {number}", nodes.len() * 2);
            return Err(malformed(message, nodes.offset_of(row)));
        }
        if rows.len() <= number {
            rows.resize(number + 1, NULL);
        }
        rows[number] = u32::try_from(row).unwrap_or(NULL);
    }
    Ok(Some(rows))
}

fn ordered<'a, const N: usize>(
    sections: &FileSections<'a>,
    is_stored: bool,
    name: &str,
    table: RowTable<'a, N>,
    nodes: usize,
    shift: u32,
) -> Result<OrderedTable<'a, N>, Error> {
    match is_stored {
        true => OrderedTable::stored(table, sections.table(name)?, nodes, shift, name),
        false => Ok(OrderedTable::made(table, nodes, shift)),
    }
}

pub(super) fn first_word<const N: usize>(row: &[u8; N]) -> u32 {
    word(row, 0)
}

/// The shift for the sort keys of references: the parent of roots is the maximum number, and becomes 0.
const ROOTS_FIRST: u32 = 1;

/// The names in the order of their numbers: those that this version knows, then others.
fn number_names(
    strings: &StringSection<'_>,
    used: &[u32],
    known: &[&str],
) -> (Vec<StringId>, HashMap<u32, u16>) {
    let mut names = vec![StringId(NULL); known.len()];
    let mut numbers = HashMap::new();
    for &name in used {
        let text = strings.get(name as usize);
        let place = known.iter().position(|known| known.as_bytes() == text).unwrap_or(names.len());
        let Ok(number) = u16::try_from(place) else { break };
        match names.get_mut(place) {
            Some(entry) => *entry = StringId(name),
            None => names.push(StringId(name)),
        }
        numbers.insert(name, number);
    }
    (names, numbers)
}

fn read_summary(sections: &FileSections<'_>) -> Result<Vec<(StringId, StringId)>, Error> {
    let Some(section) = sections.find(SUMMARY)? else { return Ok(Vec::new()) };
    let mut cursor = Cursor::new(section.bytes, section.offset);
    let mut facts = Vec::new();
    for _ in 0..cursor.u32_le().map_err(truncated)? {
        let (key, value) = (cursor.u32_le().map_err(truncated)?, cursor.u32_le().map_err(truncated)?);
        facts.push((StringId(key), StringId(value)));
    }
    Ok(facts)
}

fn read_created(sections: &FileSections<'_>) -> Result<String, Error> {
    let Some(section) = sections.find(RUNS)? else { return Ok(String::new()) };
    let mut cursor = Cursor::new(section.bytes, section.offset);
    if cursor.u32_le().map_err(truncated)? == 0 {
        return Ok(String::new());
    }
    let length = cursor.u32_le().map_err(truncated)?;
    let created = cursor.bytes(length as usize).map_err(truncated)?;
    Ok(String::from_utf8_lossy(created).into_owned())
}

fn read_totals(sections: &FileSections<'_>) -> Result<Option<Totals>, Error> {
    let Some(section) = sections.find(TOTALS)?.filter(|section| !section.bytes.is_empty()) else {
        return Ok(None);
    };
    let mut cursor = Cursor::new(section.bytes, section.offset);
    let location_types = read_list(&mut cursor).map_err(truncated)?;
    let classes = read_list(&mut cursor).map_err(truncated)?;
    Ok(Some(Totals { location_types, classes }))
}

fn read_list(cursor: &mut Cursor<'_>) -> Result<Vec<MemoryTotal>, borehole_wire::Error> {
    let mut totals = Vec::new();
    for _ in 0..cursor.u32_le()? {
        let length = cursor.u32_le()?;
        let name = cursor.bytes(length as usize)?.to_vec();
        totals.push(MemoryTotal { name, count: cursor.u64_le()?, memory_usage: cursor.u64_le()? });
    }
    Ok(totals)
}

impl Graph for MappedGraph<'_> {
    fn counts(&self) -> GraphCounts {
        GraphCounts {
            nodes: self.node_count(),
            edges: self.edges.len(),
            locations: self.locations.len(),
            attributes: self.attributes.len(),
            strings: self.strings.count,
        }
    }

    fn node_type(&self, node: NodeId) -> NodeType {
        let name = self.nodes.word(self.node_row(node), 2);
        NodeType::new(self.numbers.node_types.get(&name).copied().unwrap_or(u16::MAX))
    }

    fn canonical(&self, node: NodeId) -> Option<NodeId> {
        match &self.canonical {
            Canonical::Made(groups) => {
                let row = groups.binary_search_by_key(&node.0, |&(node, _)| node).ok()?;
                groups.get(row).map(|&(_, smallest)| NodeId(smallest))
            }
            Canonical::Stored(zero) => match self.nodes.word(self.node_row(node), 1) {
                0 => zero.has(node.0).then_some(NodeId(0)),
                canonical => ((canonical as usize) < self.node_count()).then_some(NodeId(canonical)),
            },
        }
    }

    fn children(&self, parent: Option<NodeId>) -> Range<usize> {
        self.edges.range(parent.map_or(0, |parent| parent.0.saturating_add(1)))
    }

    fn child(&self, row: usize) -> Option<Child> {
        let row = self.edges.row(row)?;
        let node = word(row, 1);
        if node as usize >= self.node_count() {
            return None;
        }
        let [is_tree, strength, ..] = word(row, 3).to_le_bytes();
        let strength = match strength {
            0 => Strength::Strong,
            1 => Strength::Weak,
            _ => Strength::Structural,
        };
        Some(Child { node: NodeId(node), link: StringId(word(row, 2)), is_tree: is_tree == 1, strength })
    }

    fn each_reference(&self, see: &mut dyn FnMut(Option<NodeId>, usize, Child)) {
        for row in 0..self.edges.len() {
            let Some(child) = self.child(row) else { continue };
            match self.edges.node(row) {
                NULL => see(None, row, child),
                parent if (parent as usize) < self.node_count() => see(Some(NodeId(parent)), row, child),
                _ => {}
            }
        }
    }

    fn locations(&self, node: NodeId) -> Range<usize> {
        self.locations.range(node.0)
    }

    fn location(&self, row: usize) -> MemoryLocation {
        let Some(row) = self.locations.row(row) else { return crate::graph::NO_LOCATION };
        let some = |index| Some(word(row, index)).filter(|&number| number != NULL).map(StringId);
        let number = |numbers: &HashMap<u32, u16>, index| numbers.get(&word(row, index)).copied();
        let (refcount, type_info) = (word(row, 8), word(row, 9));
        let is_counted = refcount != 0 || type_info != 0;
        MemoryLocation {
            location_type: LocationType::new(number(&self.numbers.location_types, 1).unwrap_or(u16::MAX)),
            address: long(row, 3),
            size: long(row, 5),
            bin_overhead: word(row, 11),
            class: some(2),
            string: some(7),
            refcount: is_counted.then_some(refcount),
            type_info: is_counted.then_some(type_info),
            region: number(&self.numbers.regions, 10).map(Region::new),
        }
    }

    fn location_node(&self, row: usize) -> NodeId {
        NodeId(self.locations.node(row))
    }

    fn attributes(&self, node: NodeId) -> Range<usize> {
        self.attributes.range(node.0)
    }

    fn attribute(&self, row: usize) -> NodeAttribute {
        let Some(found) = self.attributes.row(row) else { return crate::graph::NO_ATTRIBUTE };
        let (key, value) = (StringId(word(found, 1)), StringId(word(found, 2)));
        let kind = match self.kinds.and_then(|kinds| kinds.get(self.attributes.number(row))) {
            Some(0) => ValueKind::Null,
            Some(1) => ValueKind::Bool,
            Some(2) => ValueKind::Integer,
            Some(3) => ValueKind::Float,
            Some(5) => ValueKind::Json,
            Some(_) => ValueKind::Text,
            None => ValueKind::guess(self.string(key), self.string(value)),
        };
        NodeAttribute { key, value, kind }
    }

    fn attribute_node(&self, row: usize) -> NodeId {
        NodeId(self.attributes.node(row))
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
