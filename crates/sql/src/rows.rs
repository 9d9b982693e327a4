//! Converts a heap graph to rows of the tables.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::HashMap;

use borehole_heap::{Graph, NodeId};

use crate::error::{Error, ErrorKind};
use crate::schema::{
    CLASS_OBJECTS_SUMMARY, CONTEXT_EDGES, CONTEXT_NODE_ATTRIBUTES, CONTEXT_NODE_LOCATIONS, CONTEXT_NODES,
    LOCATION_TYPES_SUMMARY, SUMMARY, SchemaTable, SqlType,
};
use borehole_text::lossless::escape;

/// A value of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CellValue<'a> {
    Null,
    Integer(i64),
    Text(Cow<'a, str>),
}

impl<'a> CellValue<'a> {
    fn text(bytes: &'a [u8]) -> Self {
        Self::Text(escape(bytes))
    }

    fn node(node: NodeId) -> Self {
        Self::Integer(node.0.into())
    }

    /// Reinterprets a number as signed, the only kind that databases have: addresses and sizes from 2⁶³ on become negative.
    const fn bits(number: u64) -> Self {
        Self::Integer(number.cast_signed())
    }
}

impl<'a, T: Into<Self>> From<Option<T>> for CellValue<'a> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

impl From<u32> for CellValue<'_> {
    fn from(number: u32) -> Self {
        Self::Integer(number.into())
    }
}

impl From<NodeId> for CellValue<'_> {
    fn from(node: NodeId) -> Self {
        Self::node(node)
    }
}

impl<'a> From<&'a [u8]> for CellValue<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Self::text(bytes)
    }
}

/// The columns of a table that rows have values for: all but those that the database numbers.
pub(crate) fn given(table: &SchemaTable) -> impl Iterator<Item = &'static str> {
    table.columns.iter().filter(|column| column.kind != SqlType::Serial).map(|column| column.name)
}

/// Receives rows.
pub(crate) trait RowSink {
    /// Begins the rows of `table`.
    fn begin(&mut self, table: &'static SchemaTable) -> Result<(), Error>;

    /// Adds a row, with a cell for each column of [`given`].
    fn row(&mut self, cells: &[CellValue<'_>]) -> Result<(), Error>;
}

/// Writes all rows of a run.
pub(crate) fn write<G: Graph>(graph: &G, run: i64, sink: &mut dyn RowSink) -> Result<(), Error> {
    summary(graph, run, sink)?;
    nodes(graph, run, sink)?;
    edges(graph, run, sink)?;
    locations(graph, run, sink)?;
    attributes(graph, run, sink)?;
    sums(graph, run, sink)
}

fn summary<G: Graph>(graph: &G, run: i64, sink: &mut dyn RowSink) -> Result<(), Error> {
    sink.begin(&SUMMARY)?;
    for &(key, value) in graph.summary() {
        sink.row(&[CellValue::Integer(run), graph.string(key).into(), graph.string(value).into()])?;
    }
    Ok(())
}

fn nodes<G: Graph>(graph: &G, run: i64, sink: &mut dyn RowSink) -> Result<(), Error> {
    sink.begin(&CONTEXT_NODES)?;
    for node in all(graph) {
        let (name, canonical) = (graph.node_type_name(node), graph.canonical(node));
        sink.row(&[CellValue::Integer(run), node.into(), name.into(), canonical.into()])?;
    }
    Ok(())
}

fn edges<G: Graph>(graph: &G, run: i64, sink: &mut dyn RowSink) -> Result<(), Error> {
    sink.begin(&CONTEXT_EDGES)?;
    for parent in [None].into_iter().chain(all(graph).map(Some)) {
        for child in graph.children(parent).filter_map(|row| graph.child(row)) {
            sink.row(&[
                CellValue::Integer(run),
                parent.into(),
                child.node.into(),
                graph.string(child.link).into(),
                CellValue::Integer(child.is_tree.into()),
                child.strength.name().as_bytes().into(),
            ])?;
        }
    }
    Ok(())
}

fn locations<G: Graph>(graph: &G, run: i64, sink: &mut dyn RowSink) -> Result<(), Error> {
    sink.begin(&CONTEXT_NODE_LOCATIONS)?;
    for row in 0..graph.counts().locations {
        let location = graph.location(row);
        sink.row(&[
            CellValue::Integer(run),
            graph.location_node(row).into(),
            CellValue::bits(location.address),
            CellValue::bits(location.size),
            graph.location_type_name(location.location_type).into(),
            location.class.map(|class| graph.string(class)).into(),
            location.string.map(|string| graph.string(string)).into(),
            location.refcount.into(),
            location.type_info.into(),
            location.region.map(|region| graph.region_name(region)).into(),
            location.bin_overhead.into(),
        ])?;
    }
    Ok(())
}

fn attributes<G: Graph>(graph: &G, run: i64, sink: &mut dyn RowSink) -> Result<(), Error> {
    sink.begin(&CONTEXT_NODE_ATTRIBUTES)?;
    for node in all(graph) {
        for attribute in graph.attributes(node).map(|row| graph.attribute(row)) {
            let (key, value) = (graph.string(attribute.key), graph.string(attribute.value));
            sink.row(&[CellValue::Integer(run), node.into(), key.into(), value.into()])?;
        }
    }
    Ok(())
}

/// The number of locations, and their bytes.
#[derive(Clone, Copy, Default)]
struct LocationSum {
    count: u64,
    bytes: u64,
}

/// Sums the locations by type and by class. Databases take several times as long for it.
///
/// # Errors
/// If a sum does not fit into the integers of databases.
fn sums<G: Graph>(graph: &G, run: i64, sink: &mut dyn RowSink) -> Result<(), Error> {
    let (mut types, mut classes) =
        (HashMap::<&[u8], LocationSum>::new(), HashMap::<&[u8], LocationSum>::new());
    for row in 0..graph.counts().locations {
        let location = graph.location(row);
        types.entry(graph.location_type_name(location.location_type)).or_default().add(location.size)?;
        if let Some(class) = location.class {
            classes.entry(graph.string(class)).or_default().add(location.size)?;
        }
    }
    write_sums(types, &LOCATION_TYPES_SUMMARY, run, sink)?;
    write_sums(classes, &CLASS_OBJECTS_SUMMARY, run, sink)
}

/// Writes the rows of a table of sums, the largest first.
fn write_sums(
    sums: HashMap<&[u8], LocationSum>,
    table: &'static SchemaTable,
    run: i64,
    sink: &mut dyn RowSink,
) -> Result<(), Error> {
    sink.begin(table)?;
    let mut sums: Vec<_> = sums.into_iter().collect();
    sums.sort_unstable_by_key(|&(name, sum)| (Reverse(sum.bytes), name));
    sums.into_iter().try_for_each(|(name, sum)| {
        sink.row(&[
            CellValue::Integer(run),
            name.into(),
            CellValue::bits(sum.count),
            CellValue::bits(sum.bytes),
        ])
    })
}

impl LocationSum {
    fn add(&mut self, bytes: u64) -> Result<(), Error> {
        self.count += 1;
        let sum = self.bytes.checked_add(bytes).filter(|&sum| i64::try_from(sum).is_ok());
        self.bytes = sum.ok_or_else(too_large)?;
        Ok(())
    }
}

#[cold]
fn too_large() -> Error {
    Error::new(
        ErrorKind::Io,
        "sizes too large: expected a sum of at most 9,223,372,036,854,775,807 bytes, found more",
    )
}

/// Iterates over all nodes, in order.
fn all<G: Graph>(graph: &G) -> impl Iterator<Item = NodeId> + use<G> {
    (0..u32::try_from(graph.counts().nodes).unwrap_or(u32::MAX)).map(NodeId)
}
