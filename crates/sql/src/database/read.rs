//! Reads a run of a database as a graph.

use std::borrow::Cow;
use std::collections::HashMap;

use borehole_heap::{
    Edge, GraphBuilder, HeapGraph, HeapSink as _, MemoryLocation, NodeId, Strength, StringId, ValueKind,
};

use super::Database;
use crate::backend::ResultField;
use crate::error::{Error, ErrorKind};
use crate::queries::Parameters;
use crate::schema::{
    CONTEXT_EDGES, CONTEXT_NODE_ATTRIBUTES, CONTEXT_NODE_LOCATIONS, CONTEXT_NODES, RUNS, SUMMARY, SchemaTable,
};
use borehole_text::lossless::unescape;

/// Receives the rows.
struct RunReader {
    run: i64,
    builder: GraphBuilder,
    /// The number of nodes, from the first, whose numbers in the database and in the graph are equal.
    same: u32,
    /// The numbers of the other nodes in the graph, by their numbers in the database.
    numbers: HashMap<i64, NodeId>,
}

/// The columns to read from a table, and the function that receives a row of them.
type TablePart = (
    &'static SchemaTable,
    &'static [&'static str],
    fn(&mut RunReader, &[ResultField<'_>]) -> Result<(), Error>,
);

const PARTS: [TablePart; 6] = [
    (&RUNS, &["created_at"], RunReader::run_row),
    (&CONTEXT_NODES, &["node_id", "type"], RunReader::node_row),
    (
        &CONTEXT_EDGES,
        &["parent_node_id", "child_node_id", "link_name", "is_tree", "strength"],
        RunReader::edge_row,
    ),
    (
        &CONTEXT_NODE_LOCATIONS,
        &[
            "node_id",
            "address",
            "size",
            "location_type",
            "class_name",
            "string_value",
            "refcount",
            "type_info",
            "region",
            "bin_overhead",
        ],
        RunReader::location_row,
    ),
    (&CONTEXT_NODE_ATTRIBUTES, &["node_id", "key", "value"], RunReader::attribute_row),
    (&SUMMARY, &["key", "value"], RunReader::summary_row),
];

impl Database {
    /// Reads a run as a graph in memory. Nodes are renumbered if their numbers have gaps.
    ///
    /// # Errors
    /// If there is no such run, or the database cannot be read or refers to missing nodes.
    pub fn graph(&mut self, run: i64) -> Result<HeapGraph, Error> {
        self.run(Some(run))?;
        let begin = self.dialect().begin_to_read();
        self.within(begin, |database| database.read_graph(run))
    }

    fn read_graph(&mut self, run: i64) -> Result<HeapGraph, Error> {
        let mut reader = RunReader { run, builder: GraphBuilder::new(), same: 0, numbers: HashMap::new() };
        for (table, columns, take) in PARTS {
            let statement = self.rows_of(table, columns)?;
            let (statement, numbers) = self.dialect().bind(&statement, Parameters::of_run(run));
            self.backend.select(&statement, &numbers, &mut |fields| take(&mut reader, fields))?;
        }
        reader.builder.finish().map_err(|error| Error::new(ErrorKind::Unsupported, error.to_string()))
    }

    /// The statement that selects the rows of a run from a table: nodes by number, others in the order in which they
    /// were written.
    fn rows_of(&mut self, table: &SchemaTable, columns: &[&str]) -> Result<String, Error> {
        let columns = columns.iter().map(|column| self.selected(table, column));
        let columns = columns.collect::<Result<Vec<_>, _>>()?.join(", ");
        let order = match table.name {
            "context_nodes" => " ORDER BY node_id",
            // A run has one row in this table.
            "runs" => "",
            _ => self.written_order(table)?,
        };
        let is_in_order = !order.is_empty() || table.name == "runs";
        let index = if is_in_order { "" } else { " USE INDEX ()" };
        Ok(format!("SELECT {columns} FROM {}{index} WHERE run_id = :run{order}", table.name))
    }
}

impl RunReader {
    fn run_row(&mut self, fields: &[ResultField<'_>]) -> Result<(), Error> {
        self.builder.set_created(&fields[0].text());
        Ok(())
    }

    fn node_row(&mut self, fields: &[ResultField<'_>]) -> Result<(), Error> {
        let number = fields[0].integer().unwrap_or_default();
        let node_type = self.builder.node_type(&bytes(fields[1]).unwrap_or_default());
        let node = self.builder.node(node_type);
        if number == i64::from(node.0) && node.0 == self.same {
            self.same += 1;
        } else {
            self.numbers.insert(number, node);
        }
        Ok(())
    }

    /// The node that has this number in the database.
    fn node(&self, number: ResultField<'_>) -> Result<NodeId, Error> {
        let number = number.integer().unwrap_or(-1);
        let same = u32::try_from(number).ok().filter(|&node| node < self.same).map(NodeId);
        same.or_else(|| self.numbers.get(&number).copied()).ok_or_else(|| {
            let message = format!("invalid node number {number} in run {}: missing node", self.run);
            Error::new(ErrorKind::Unsupported, message)
        })
    }

    fn edge_row(&mut self, fields: &[ResultField<'_>]) -> Result<(), Error> {
        let parent = match fields[0] {
            ResultField::Null => None,
            parent => Some(self.node(parent)?),
        };
        let child = self.node(fields[1])?;
        let link = self.builder.string(&bytes(fields[2]).unwrap_or_default());
        let is_tree = fields[3].integer().is_some_and(|is_tree| is_tree != 0);
        let strength = match &*bytes(fields[4]).unwrap_or_default() {
            b"weak" => Strength::Weak,
            b"structural" => Strength::Structural,
            _ => Strength::Strong,
        };
        self.builder.edge(Edge { parent, child, link, is_tree, strength });
        Ok(())
    }

    fn location_row(&mut self, fields: &[ResultField<'_>]) -> Result<(), Error> {
        let node = self.node(fields[0])?;
        let number = |at: usize| fields[at].integer().unwrap_or_default().cast_unsigned();
        let small = |at: usize| fields[at].integer().and_then(|number| u32::try_from(number).ok());
        let location = MemoryLocation {
            address: number(1),
            size: number(2),
            location_type: self.builder.location_type(&bytes(fields[3]).unwrap_or_default()),
            class: self.string(fields[4]),
            string: self.string(fields[5]),
            refcount: small(6),
            type_info: small(7),
            region: bytes(fields[8]).map(|region| self.builder.region(&region)),
            bin_overhead: small(9).unwrap_or_default(),
        };
        self.builder.location(node, &location);
        Ok(())
    }

    fn attribute_row(&mut self, fields: &[ResultField<'_>]) -> Result<(), Error> {
        let node = self.node(fields[0])?;
        let [key, value] = [fields[1], fields[2]].map(|field| bytes(field).unwrap_or_default());
        let kind = ValueKind::guess(&key, &value);
        let key = self.builder.string(&key);
        self.builder.attribute_text(node, key, &value, kind);
        Ok(())
    }

    fn summary_row(&mut self, fields: &[ResultField<'_>]) -> Result<(), Error> {
        let [key, value] = [fields[0], fields[1]]
            .map(|field| String::from_utf8_lossy(&bytes(field).unwrap_or_default()).into_owned());
        self.builder.summary(&key, &value);
        Ok(())
    }

    fn string(&mut self, field: ResultField<'_>) -> Option<StringId> {
        bytes(field).map(|string| self.builder.string(&string))
    }
}

/// The bytes that a text encodes; `None` if it is absent.
fn bytes(field: ResultField<'_>) -> Option<Cow<'_, [u8]>> {
    match field {
        ResultField::Null => None,
        // Reli writes the bytes of a string unchanged.
        ResultField::Text(text) => Some(match std::str::from_utf8(text) {
            Ok(text) => unescape(text),
            Err(_) => Cow::Borrowed(text),
        }),
        ResultField::Integer(_) | ResultField::Real(_) => Some(Cow::Owned(field.text().into_bytes())),
    }
}
