//! Writes a graph as JSON Lines: one object per node, reference, location and attribute.
//!
//! `docs/heap-lines.md` describes the lines.

use std::io::{self, Write};

use borehole_text::LineWriter;

use crate::graph::{Child, Graph, NodeAttribute, nodes};
use crate::json::is_number;
use crate::sink::{MemoryLocation, NodeId, StringId, ValueKind};

/// The number of bytes to collect before writing to the output.
const BUFFER_BYTES: usize = 64 << 10;

/// The version of the format of the lines.
const SCHEMA_VERSION: u64 = 1;

/// Writes `graph` as JSON Lines, without loss, in the order of its nodes.
///
#[doc = crate::doc_graph::graph_example!(
    r#"let mut file = Vec::new();
borehole_heap::lines::write(&graph, &mut file)?;
assert!(String::from_utf8(file)?.lines().all(|line| line.starts_with('{')));"#
)]
/// # Errors
/// The errors of writing `output`.
pub fn write(graph: &impl Graph, output: impl Write) -> io::Result<()> {
    GraphLines { graph, line: LineWriter::default(), output }.all()
}

struct GraphLines<'a, G, W: Write> {
    graph: &'a G,
    /// The lines that are not in `output` yet.
    line: LineWriter,
    output: W,
}

impl<G: Graph, W: Write> GraphLines<'_, G, W> {
    fn all(&mut self) -> io::Result<()> {
        self.first()?;
        for &(key, value) in self.graph.summary() {
            self.begin("summary");
            self.string("key", key);
            self.string("value", value);
            self.end()?;
        }
        self.edges(None)?;
        for node in nodes(self.graph.counts().nodes) {
            self.node(node)?;
            for row in self.graph.locations(node) {
                self.location(node, &self.graph.location(row))?;
            }
            for row in self.graph.attributes(node) {
                self.attribute(node, self.graph.attribute(row))?;
            }
            self.edges(Some(node))?;
        }
        self.begin("end");
        self.number("nodes", self.graph.counts().nodes as u64);
        self.end()?;
        self.hand_over()?;
        self.output.flush()
    }

    fn first(&mut self) -> io::Result<()> {
        let counts = self.graph.counts();
        self.begin("heap");
        self.number("schema_version", SCHEMA_VERSION);
        if !self.graph.created().is_empty() {
            self.bytes("created", self.graph.created().as_bytes());
        }
        self.number("nodes", counts.nodes as u64);
        self.number("edges", counts.edges as u64);
        self.number("locations", counts.locations as u64);
        self.number("attributes", counts.attributes as u64);
        self.end()
    }

    fn begin(&mut self, line: &str) {
        self.line.begin_object();
        self.line.key("type");
        self.line.text(line);
    }

    fn end(&mut self) -> io::Result<()> {
        self.line.end_object();
        self.line.end_line();
        if self.line.bytes().len() < BUFFER_BYTES { Ok(()) } else { self.hand_over() }
    }

    fn hand_over(&mut self) -> io::Result<()> {
        self.output.write_all(self.line.bytes())?;
        self.line.clear();
        Ok(())
    }

    fn number(&mut self, key: &str, number: u64) {
        self.line.key(key);
        self.line.unsigned(number);
    }

    fn string(&mut self, key: &str, string: StringId) {
        self.bytes(key, self.graph.string(string));
    }

    fn bytes(&mut self, key: &str, bytes: &[u8]) {
        self.line.key(key);
        self.line.string(bytes);
    }

    fn node(&mut self, node: NodeId) -> io::Result<()> {
        self.begin("node");
        self.number("id", u64::from(node.0));
        self.bytes("node_type", self.graph.node_type_name(node));
        if let Some(canonical) = self.graph.canonical(node) {
            self.number("canonical", u64::from(canonical.0));
        }
        self.end()
    }

    fn edges(&mut self, parent: Option<NodeId>) -> io::Result<()> {
        for row in self.graph.children(parent) {
            if let Some(child) = self.graph.child(row) {
                self.edge(parent, &child)?;
            }
        }
        Ok(())
    }

    fn edge(&mut self, parent: Option<NodeId>, child: &Child) -> io::Result<()> {
        self.begin("edge");
        if let Some(parent) = parent {
            self.number("parent", u64::from(parent.0));
        }
        self.number("child", u64::from(child.node.0));
        self.string("link", child.link);
        let strength = child.strength.name();
        self.line.key("is_tree");
        self.line.boolean(child.is_tree);
        self.line.key("strength");
        self.line.text(strength);
        self.end()
    }

    fn location(&mut self, node: NodeId, location: &MemoryLocation) -> io::Result<()> {
        self.begin("location");
        self.number("node", u64::from(node.0));
        self.bytes("location_type", self.graph.location_type_name(location.location_type));
        self.number("address", location.address);
        self.number("size", location.size);
        self.number("bin_overhead", u64::from(location.bin_overhead));
        for (key, number) in [("refcount", location.refcount), ("type_info", location.type_info)] {
            if let Some(number) = number {
                self.number(key, u64::from(number));
            }
        }
        for (key, string) in [("class_name", location.class), ("string_value", location.string)] {
            if let Some(string) = string {
                self.string(key, string);
            }
        }
        if let Some(region) = location.region {
            self.bytes("region", self.graph.region_name(region));
        }
        self.end()
    }

    fn attribute(&mut self, node: NodeId, found: NodeAttribute) -> io::Result<()> {
        self.begin("attribute");
        self.number("node", u64::from(node.0));
        self.string("key", found.key);
        let text = self.graph.string(found.value);
        // A number that JSON lacks is the list that replaces it, as text.
        self.line.key(if found.kind == ValueKind::Json { "json" } else { "value" });
        match (found.kind, std::str::from_utf8(text)) {
            (ValueKind::Null, _) => self.line.null(),
            (ValueKind::Bool, _) => self.line.boolean(!matches!(text, b"" | b"0")),
            (ValueKind::Integer | ValueKind::Float, Ok(number)) if is_number(text) => self.line.raw(number),
            _ => self.line.string(text),
        }
        self.end()
    }
}
