//! Writes a graph as reli's JSON.

use std::io::{self, Write};
use std::ops::Range;

use borehole_text::IntegerDigits;

use super::locations::{PACKED, fact, facts, is_shown, used_table};
use super::text::{put_fact, put_string, put_value};
use super::{LOCATIONS, NODE_ID, REFERENCE, TYPE};
use crate::graph::{Child, Graph, MemoryTotal, attributes, locations};
use crate::names::LocationType;
use crate::sink::{MemoryLocation, NodeId};
use crate::totals::{TotalsScope, totals};

/// The layout of JSON.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum JsonLayout {
    /// On one line.
    #[default]
    Compact,
    /// One line per value with four spaces per level, like PHP's `JSON_PRETTY_PRINT`.
    Pretty,
}

/// Writes `graph` as reli's JSON. The output is streamed; memory holds one path of the tree.
///
#[doc = crate::doc_graph::graph_example!(
    r#"use borehole_heap::json::{JsonLayout, write};

let mut file = Vec::new();
write(&graph, JsonLayout::Pretty, &mut file)?;
assert!(file.starts_with(b"{\n"));"#
)]
/// # Errors
/// The errors of writing `output`.
pub fn write(graph: &impl Graph, layout: JsonLayout, output: impl Write) -> io::Result<()> {
    let mut writer = TreeWriter {
        graph,
        json: Json { out: io::BufWriter::with_capacity(1 << 16, output), layout, depth: 0, is_first: true },
        seen: vec![false; graph.counts().nodes],
    };
    writer.document()
}

/// Writes objects and lists with their commas and line breaks.
struct Json<W: Write> {
    out: io::BufWriter<W>,
    layout: JsonLayout,
    depth: usize,
    is_first: bool,
}

impl<W: Write> Json<W> {
    fn open(&mut self, bracket: &[u8]) -> io::Result<()> {
        self.depth += 1;
        self.is_first = true;
        self.out.write_all(bracket)
    }

    fn close(&mut self, bracket: &[u8]) -> io::Result<()> {
        self.depth = self.depth.saturating_sub(1);
        if !self.is_first {
            self.line()?;
        }
        self.is_first = false;
        self.out.write_all(bracket)
    }

    fn line(&mut self) -> io::Result<()> {
        if self.layout == JsonLayout::Pretty {
            self.out.write_all(b"\n")?;
            (0..self.depth).try_for_each(|_| self.out.write_all(b"    "))?;
        }
        Ok(())
    }

    /// Writes the separator before an entry of a list or an object.
    fn item(&mut self) -> io::Result<()> {
        if !self.is_first {
            self.out.write_all(b",")?;
        }
        self.is_first = false;
        self.line()
    }

    fn key(&mut self, key: &[u8]) -> io::Result<()> {
        self.item()?;
        put_string(&mut self.out, key)?;
        self.out.write_all(if self.layout == JsonLayout::Pretty { b": " } else { b":" })
    }

    fn number(&mut self, key: &str, number: u64) -> io::Result<()> {
        self.key(key.as_bytes())?;
        self.out.write_all(IntegerDigits::of_unsigned(number).text())
    }

    fn string(&mut self, key: &str, text: &[u8]) -> io::Result<()> {
        self.key(key.as_bytes())?;
        put_string(&mut self.out, text)
    }
}

struct TreeWriter<'a, G, W: Write> {
    graph: &'a G,
    json: Json<W>,
    /// Whether each node has been written. A damaged tree may reach a node twice.
    seen: Vec<bool>,
}

impl<G: Graph, W: Write> TreeWriter<'_, G, W> {
    fn document(&mut self) -> io::Result<()> {
        self.json.open(b"{")?;
        self.json.key(b"summary")?;
        self.summary()?;
        let counted =
            self.graph.totals().cloned().unwrap_or_else(|| totals(self.graph, TotalsScope::OwnMemory));
        self.totals("location_types_summary", &counted.location_types)?;
        self.totals("class_objects_summary", &counted.classes)?;
        self.json.key(b"context")?;
        self.context()?;
        self.json.close(b"}")?;
        self.json.out.flush()
    }

    fn summary(&mut self) -> io::Result<()> {
        self.json.open(b"[")?;
        self.json.item()?;
        let facts = self.graph.summary();
        if facts.is_empty() {
            self.json.out.write_all(b"[]")?;
            return self.json.close(b"]");
        }
        self.json.open(b"{")?;
        for &(key, value) in facts {
            self.json.key(self.graph.string(key))?;
            put_fact(&mut self.json.out, self.graph.string(value))?;
        }
        self.json.close(b"}")?;
        self.json.close(b"]")
    }

    fn totals(&mut self, key: &str, totals: &[MemoryTotal]) -> io::Result<()> {
        self.json.key(key.as_bytes())?;
        if totals.is_empty() {
            return self.json.out.write_all(b"[]");
        }
        self.json.open(b"{")?;
        for total in totals {
            self.json.key(&total.name)?;
            self.json.open(b"{")?;
            self.json.number("count", total.count)?;
            self.json.number("memory_usage", total.memory_usage)?;
            self.json.close(b"}")?;
        }
        self.json.close(b"}")
    }

    /// Writes the tree, depth first. An explicit stack has the remaining rows of each node on the path, because trees are deep.
    fn context(&mut self) -> io::Result<()> {
        let roots = self.graph.children(None);
        if roots.is_empty() {
            return self.json.out.write_all(b"[]");
        }
        self.json.open(b"{")?;
        let mut path: Vec<(Option<NodeId>, Range<usize>)> = vec![(None, roots)];
        while let Some((parent, rows)) = path.last_mut() {
            let parent = *parent;
            let Some(row) = rows.next() else {
                self.json.close(b"}")?;
                path.pop();
                continue;
            };
            let Some(child) = self.graph.child(row) else { continue };
            if self.child(parent, &child)? {
                path.push((Some(child.node), self.graph.children(Some(child.node))));
            }
        }
        Ok(())
    }

    /// Begins a child, or writes a reference to it; returns whether it was begun.
    fn child(&mut self, parent: Option<NodeId>, child: &Child) -> io::Result<bool> {
        self.json.key(self.graph.string(child.link))?;
        self.json.open(b"{")?;
        let is_new = child.is_tree
            && self.seen.get_mut(child.node.0 as usize).is_some_and(|seen| !std::mem::replace(seen, true));
        if is_new {
            self.node(parent, child.node)?;
        } else {
            self.json.number(REFERENCE, u64::from(child.node.0))?;
            self.json.close(b"}")?;
        }
        Ok(is_new)
    }

    fn node(&mut self, parent: Option<NodeId>, node: NodeId) -> io::Result<()> {
        self.json.number(NODE_ID, u64::from(node.0))?;
        self.json.string(TYPE, self.graph.node_type_name(node))?;
        let locations = locations(self.graph, node);
        let shown: Vec<MemoryLocation> =
            locations.filter(|location| is_shown(location.location_type)).collect();
        if !shown.is_empty() {
            self.json.key(LOCATIONS.as_bytes())?;
            self.json.open(b"[")?;
            for location in &shown {
                self.json.item()?;
                self.location(parent, node, location)?;
            }
            self.json.close(b"]")?;
        }
        for found in attributes(self.graph, node) {
            let key = self.graph.string(found.key);
            let is_of = |location: &MemoryLocation| {
                facts(location.location_type).iter().any(|fact| fact.as_bytes() == key)
            };
            if !shown.iter().any(is_of) {
                self.json.key(key)?;
                put_value(&mut self.json.out, self.graph.string(found.value), found.kind)?;
            }
        }
        Ok(())
    }

    fn location(
        &mut self,
        parent: Option<NodeId>,
        node: NodeId,
        location: &MemoryLocation,
    ) -> io::Result<()> {
        self.json.open(b"{")?;
        self.json.number("address", location.address)?;
        self.json.number("size", location.size)?;
        if let (Some(refcount), Some(type_info)) = (location.refcount, location.type_info) {
            self.json.number("refcount", u64::from(refcount))?;
            self.json.number("type_info", u64::from(type_info))?;
        }
        if let Some(class) = location.class {
            self.json.string("class_name", self.graph.string(class))?;
        }
        if let Some(string) = location.string {
            self.json.string("value", self.graph.string(string))?;
        }
        self.facts(node, location.location_type)?;
        let is_overhead = location.location_type == LocationType::ARRAY_TABLE_OVERHEAD;
        let used = parent.filter(|_| is_overhead).and_then(|parent| used_table(self.graph, parent));
        if let Some((elements, table)) = used {
            self.json.key(b"used_location")?;
            self.json.open(b"{")?;
            self.json.number("address", table.address)?;
            self.json.number("size", table.size)?;
            self.facts(elements, table.location_type)?;
            self.json.close(b"}")?;
        }
        self.json.close(b"}")
    }

    fn facts(&mut self, node: NodeId, location_type: LocationType) -> io::Result<()> {
        for key in facts(location_type) {
            if let Some(found) = fact(self.graph, node, key) {
                self.json.key(key.as_bytes())?;
                put_value(&mut self.json.out, self.graph.string(found.value), found.kind)?;
            } else if *key == PACKED {
                self.json.key(key.as_bytes())?;
                self.json.out.write_all(b"false")?;
            }
        }
        Ok(())
    }
}
