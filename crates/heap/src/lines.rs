//! Writes a graph as JSON Lines: one object per node, reference, location and attribute.
//!
//! `docs/heap-lines.md` describes the lines.

use std::io::{self, Write};

use crate::error::Error;
use crate::graph::{Attribute, Child, Graph, ValueKind, nodes};
use crate::json::{is_number, put_string};
use crate::number::Digits;
use crate::sink::{Location, NodeId, StringId};

const FORMAT: &str = "heap lines";

/// The version of the format of the lines.
const SCHEMA_VERSION: u64 = 1;

/// Writes `graph` as JSON Lines, without loss, in the order of its nodes.
///
/// # Errors
/// The errors of writing `output`.
pub fn write(graph: &impl Graph, output: impl Write) -> Result<(), Error> {
    let mut lines = Lines { graph, out: io::BufWriter::with_capacity(1 << 16, output) };
    lines.all().map_err(|error| Error::io(FORMAT, error))
}

struct Lines<'a, G, W: Write> {
    graph: &'a G,
    out: io::BufWriter<W>,
}

impl<G: Graph, W: Write> Lines<'_, G, W> {
    fn all(&mut self) -> io::Result<()> {
        self.first()?;
        for &(key, value) in self.graph.summary() {
            self.begin("summary")?;
            self.string("key", key)?;
            self.string("value", value)?;
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
        self.begin("end")?;
        self.number("nodes", self.graph.counts().nodes as u64)?;
        self.end()?;
        self.out.flush()
    }

    fn first(&mut self) -> io::Result<()> {
        let counts = self.graph.counts();
        self.begin("heap")?;
        self.number("schema_version", SCHEMA_VERSION)?;
        if !self.graph.created().is_empty() {
            self.bytes("created", self.graph.created().as_bytes())?;
        }
        self.number("nodes", counts.nodes as u64)?;
        self.number("edges", counts.edges as u64)?;
        self.number("locations", counts.locations as u64)?;
        self.number("attributes", counts.attributes as u64)?;
        self.end()
    }

    fn begin(&mut self, line: &str) -> io::Result<()> {
        write!(self.out, "{{\"type\":\"{line}\"")
    }

    fn end(&mut self) -> io::Result<()> {
        self.out.write_all(b"}\n")
    }

    fn key(&mut self, key: &str) -> io::Result<()> {
        write!(self.out, ",\"{key}\":")
    }

    fn number(&mut self, key: &str, number: u64) -> io::Result<()> {
        self.key(key)?;
        self.out.write_all(Digits::of_unsigned(number).text())
    }

    fn string(&mut self, key: &str, string: StringId) -> io::Result<()> {
        self.bytes(key, self.graph.string(string))
    }

    /// Bytes that are not valid UTF-8 are written in hexadecimal digits.
    fn bytes(&mut self, key: &str, bytes: &[u8]) -> io::Result<()> {
        self.key(key)?;
        if std::str::from_utf8(bytes).is_ok() {
            return put_string(&mut self.out, bytes);
        }
        self.out.write_all(b"{\"hex\":\"")?;
        bytes.iter().try_for_each(|byte| write!(self.out, "{byte:02x}"))?;
        self.out.write_all(b"\"}")
    }

    fn node(&mut self, node: NodeId) -> io::Result<()> {
        self.begin("node")?;
        self.number("id", u64::from(node.0))?;
        self.bytes("node_type", self.graph.node_type_name(node))?;
        if let Some(canonical) = self.graph.canonical(node) {
            self.number("canonical", u64::from(canonical.0))?;
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
        self.begin("edge")?;
        if let Some(parent) = parent {
            self.number("parent", u64::from(parent.0))?;
        }
        self.number("child", u64::from(child.node.0))?;
        self.string("link", child.link)?;
        let strength = child.strength.name();
        write!(self.out, ",\"is_tree\":{},\"strength\":\"{strength}\"", child.is_tree)?;
        self.end()
    }

    fn location(&mut self, node: NodeId, location: &Location) -> io::Result<()> {
        self.begin("location")?;
        self.number("node", u64::from(node.0))?;
        self.bytes("location_type", self.graph.location_type_name(location.location_type))?;
        self.number("address", location.address)?;
        self.number("size", location.size)?;
        self.number("bin_overhead", u64::from(location.bin_overhead))?;
        for (key, number) in [("refcount", location.refcount), ("type_info", location.type_info)] {
            number.map_or(Ok(()), |number| self.number(key, u64::from(number)))?;
        }
        for (key, string) in [("class_name", location.class), ("string_value", location.string)] {
            string.map_or(Ok(()), |string| self.string(key, string))?;
        }
        if let Some(region) = location.region {
            self.bytes("region", self.graph.region_name(region))?;
        }
        self.end()
    }

    fn attribute(&mut self, node: NodeId, found: Attribute) -> io::Result<()> {
        self.begin("attribute")?;
        self.number("node", u64::from(node.0))?;
        self.string("key", found.key)?;
        let text = self.graph.string(found.value);
        match found.kind {
            ValueKind::Null => self.out.write_all(b",\"value\":null")?,
            ValueKind::Bool => write!(self.out, ",\"value\":{}", !matches!(text, b"" | b"0"))?,
            ValueKind::Integer | ValueKind::Float if is_number(text) => {
                self.key("value")?;
                self.out.write_all(text)?;
            }
            // A number that JSON lacks is the list that replaces it, as text.
            ValueKind::Json => self.string("json", found.value)?,
            _ => self.string("value", found.value)?,
        }
        self.end()
    }
}
