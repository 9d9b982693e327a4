//! A run of a database as a graph.

use std::borrow::Cow;
use std::collections::HashMap;

use borehole_heap::{
    Builder, Edge, HeapGraph, HeapSink as _, Location, NodeId, Strength, StringId, ValueKind,
};
use rusqlite::Row;
use rusqlite::types::ValueRef;

use super::{Sqlite, refused};
use crate::error::{Error, ErrorKind};
use crate::text::unescape;

/// Takes rows.
struct Reader<'d> {
    database: &'d Sqlite,
    run: i64,
    builder: Builder,
    /// How many nodes, from the first, have the same number in the database and in the graph.
    same: u32,
    /// The numbers in the graph of the others, by those in the database.
    numbers: HashMap<i64, NodeId>,
}

impl Sqlite {
    /// A run as a graph in memory. Nodes are numbered anew where their numbers have gaps.
    ///
    /// # Errors
    /// When there is no such run, the database cannot be read, or refers to nodes that it does not have.
    pub fn graph(&self, run: i64) -> Result<HeapGraph, Error> {
        self.run(Some(run))?;
        let created = "SELECT created_at FROM runs WHERE run_id = ?1";
        let created: String = self.connection.query_row(created, [run], |row| row.get(0)).map_err(refused)?;
        let mut reader =
            Reader { database: self, run, builder: Builder::new(), same: 0, numbers: HashMap::new() };
        reader.builder.set_created(&created);
        reader.nodes()?;
        reader.edges()?;
        reader.locations()?;
        reader.attributes()?;
        reader.summary()?;
        reader.builder.finish().map_err(|error| Error::new(ErrorKind::Unsupported, error.to_string()))
    }
}

impl Reader<'_> {
    fn each(
        &mut self,
        columns: &str,
        take: impl Fn(&mut Self, &Row<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let statement = format!("SELECT {columns}");
        let mut statement = self.database.connection.prepare(&statement).map_err(refused)?;
        let mut rows = statement.query([self.run]).map_err(refused)?;
        while let Some(row) = rows.next().map_err(refused)? {
            take(self, row)?;
        }
        Ok(())
    }

    fn nodes(&mut self) -> Result<(), Error> {
        self.each("node_id, type FROM context_nodes WHERE run_id = ?1 ORDER BY node_id", |reader, row| {
            let number: i64 = row.get(0).map_err(refused)?;
            let node_type = reader.builder.node_type(&bytes(row, 1)?.unwrap_or_default());
            let node = reader.builder.node(node_type);
            if number == i64::from(node.0) && node.0 == reader.same {
                reader.same += 1;
            } else {
                reader.numbers.insert(number, node);
            }
            Ok(())
        })
    }

    /// The node that the database calls by this number.
    fn node(&self, number: i64) -> Result<NodeId, Error> {
        let same = u32::try_from(number).ok().filter(|&node| node < self.same).map(NodeId);
        same.or_else(|| self.numbers.get(&number).copied()).ok_or_else(|| {
            let message = format!("expected a node of run {}, found number {number}", self.run);
            Error::new(ErrorKind::Unsupported, message)
        })
    }

    fn edges(&mut self) -> Result<(), Error> {
        let columns = "parent_node_id, child_node_id, link_name, is_tree, strength FROM context_edges \
                       WHERE run_id = ?1 ORDER BY id";
        self.each(columns, |reader, row| {
            let parent: Option<i64> = row.get(0).map_err(refused)?;
            let parent = parent.map(|parent| reader.node(parent)).transpose()?;
            let child = reader.node(row.get(1).map_err(refused)?)?;
            let link = reader.builder.string(&bytes(row, 2)?.unwrap_or_default());
            let is_tree = row.get::<_, i64>(3).map_err(refused)? != 0;
            let strength = match &*bytes(row, 4)?.unwrap_or_default() {
                b"weak" => Strength::Weak,
                b"structural" => Strength::Structural,
                _ => Strength::Strong,
            };
            reader.builder.edge(Edge { parent, child, link, is_tree, strength });
            Ok(())
        })
    }

    fn locations(&mut self) -> Result<(), Error> {
        let columns = "node_id, address, size, location_type, class_name, string_value, refcount, type_info, \
                       region, bin_overhead FROM context_node_locations WHERE run_id = ?1 ORDER BY id";
        self.each(columns, |reader, row| {
            let node = reader.node(row.get(0).map_err(refused)?)?;
            let number = |at| row.get::<_, Option<i64>>(at).map_err(refused);
            let small = |at| Ok::<_, Error>(number(at)?.and_then(|number| u32::try_from(number).ok()));
            let location = Location {
                address: number(1)?.unwrap_or_default().cast_unsigned(),
                size: number(2)?.unwrap_or_default().cast_unsigned(),
                location_type: reader.builder.location_type(&bytes(row, 3)?.unwrap_or_default()),
                class: reader.string(row, 4)?,
                string: reader.string(row, 5)?,
                refcount: small(6)?,
                type_info: small(7)?,
                region: bytes(row, 8)?.map(|region| reader.builder.region(&region)),
                bin_overhead: small(9)?.unwrap_or_default(),
            };
            reader.builder.location(node, &location);
            Ok(())
        })
    }

    fn attributes(&mut self) -> Result<(), Error> {
        let columns = "node_id, key, value FROM context_node_attributes WHERE run_id = ?1 ORDER BY id";
        self.each(columns, |reader, row| {
            let node = reader.node(row.get(0).map_err(refused)?)?;
            let (key, value) = (bytes(row, 1)?.unwrap_or_default(), bytes(row, 2)?.unwrap_or_default());
            let kind = ValueKind::guess(&key, &value);
            let key = reader.builder.string(&key);
            reader.builder.attribute_text(node, key, &value, kind);
            Ok(())
        })
    }

    fn summary(&mut self) -> Result<(), Error> {
        self.each("key, value FROM summary WHERE run_id = ?1 ORDER BY rowid", |reader, row| {
            let [key, value] = [bytes(row, 0)?, bytes(row, 1)?]
                .map(|text| String::from_utf8_lossy(&text.unwrap_or_default()).into_owned());
            reader.builder.summary(&key, &value);
            Ok(())
        })
    }

    fn string(&mut self, row: &Row<'_>, at: usize) -> Result<Option<StringId>, Error> {
        Ok(bytes(row, at)?.map(|string| self.builder.string(&string)))
    }
}

/// The bytes that a text stands for; `None` where there is none.
fn bytes<'r>(row: &'r Row<'_>, at: usize) -> Result<Option<Cow<'r, [u8]>>, Error> {
    Ok(match row.get_ref(at).map_err(refused)? {
        ValueRef::Null => None,
        // Reli writes the bytes of a string as they are.
        ValueRef::Text(text) | ValueRef::Blob(text) => Some(match std::str::from_utf8(text) {
            Ok(text) => unescape(text),
            Err(_) => Cow::Borrowed(text),
        }),
        ValueRef::Integer(number) => Some(Cow::Owned(number.to_string().into_bytes())),
        ValueRef::Real(number) => Some(Cow::Owned(number.to_string().into_bytes())),
    })
}
