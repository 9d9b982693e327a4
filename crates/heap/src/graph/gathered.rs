//! Rows of a graph in the order in which a walk adds them, and how they are sorted by node.
//!
//! The rows are packed, each as what it differs from the one before, and are sorted while they are unpacked: no part of the graph
//! is in memory twice. References are sorted by counting. Nearly all locations and attributes come in the order of their nodes,
//! so the few late ones are gathered apart, and merged.

use super::NodeAttribute;
use super::column::{Column, ColumnBuilder, GraphStorage};
use super::columns::{AttributeColumns, EdgeRows};
use super::locations::{LocationColumns, LocationRow, LocationShape, LocationTable};
use super::packed::{PackedRows, step, stepped};
use crate::sink::{NodeId, StringId, ValueKind};

/// References. A row: the parent plus 1, the child, the name, and the flags.
#[derive(Debug, Default)]
pub(super) struct GatheredEdges {
    rows: PackedRows<4>,
    last: [u64; 2],
}

/// Locations.
#[derive(Debug, Default)]
pub(super) struct GatheredLocations {
    in_order: LocationRows,
    late: LocationRows,
}

/// A row: address, node, size, class and string plus 1, reference count, type, overhead, kind, and region plus 1.
#[derive(Debug, Default)]
struct LocationRows {
    rows: PackedRows<10>,
    last: [u64; 2],
}

/// Facts about nodes.
#[derive(Debug, Default)]
pub(super) struct GatheredAttributes {
    in_order: AttributeRows,
    late: AttributeRows,
}

/// A row: node, key, value, and the type of the value.
#[derive(Debug, Default)]
struct AttributeRows {
    rows: PackedRows<4>,
    last: u64,
}

impl GatheredEdges {
    pub(super) const fn len(&self) -> usize {
        self.rows.len()
    }

    /// Adds a reference. The parent of a root is the maximum of 32 bits.
    #[inline]
    pub(super) fn push(&mut self, parent: u32, child: u32, link: u32, flags: u8) {
        let ends = [parent.wrapping_add(1), child].map(u64::from);
        let [parent, child] = [0, 1].map(|end| step(self.last[end], ends[end]));
        self.rows.push([parent, child, link.into(), flags.into()]);
        self.last = ends;
    }

    /// Sorts by parent.
    pub(super) fn into_rows(self, nodes: usize, storage: GraphStorage) -> EdgeRows {
        let mut parent = 0;
        let mut starts = vec![0_u32; nodes + 2];
        self.rows.each(|[step, ..]| {
            parent = stepped(parent, step);
            starts[index(parent) + 1] += 1;
        });
        add_up(&mut starts);
        let (children, links, flags) = match storage {
            GraphStorage::Plain => self.sorted(&mut starts),
            GraphStorage::Packed => self.sorted_one_by_one(&mut starts, storage),
        };
        // Each entry is now the end of its node's references, which is the start of the next node's.
        starts.pop();
        EdgeRows { starts: Column::stored(starts, storage), children, links, flags }
    }

    fn sorted(self, starts: &mut [u32]) -> (Column<u32>, Column<u32>, Column<u8>) {
        let count = self.len();
        let (mut children, mut links, mut flags) = (vec![0; count], vec![0; count], vec![0; count]);
        let mut last = [0; 2];
        self.rows.take_each(|[parent, child, link, flag]| {
            last = [stepped(last[0], parent), stepped(last[1], child)];
            let row = next_place(starts, last[0]);
            (children[row], links[row], flags[row]) = (low(last[1]), low(link), low(flag).to_le_bytes()[0]);
        });
        (Column::Plain(children), Column::Plain(links), Column::Plain(flags))
    }

    /// Like [`Self::sorted`], with only one column at a time as it is.
    fn sorted_one_by_one(
        self,
        starts: &mut [u32],
        storage: GraphStorage,
    ) -> (Column<u32>, Column<u32>, Column<u8>) {
        let children = self.sorted_column(starts, |child, _, _| child);
        let children = Column::stored(children, storage);
        begin_again(starts);
        let links = self.sorted_column(starts, |_, link, _| link);
        let links = Column::stored(links, storage);
        begin_again(starts);
        let flags = self.sorted_column(starts, |_, _, flags| flags);
        (children, links, Column::stored(flags, storage))
    }

    fn sorted_column<T: Copy + Default>(
        &self,
        starts: &mut [u32],
        take: impl Fn(u32, u32, u8) -> T,
    ) -> Vec<T> {
        let mut column = vec![T::default(); self.len()];
        let mut last = [0; 2];
        self.rows.each(|[parent, child, link, flags]| {
            last = [stepped(last[0], parent), stepped(last[1], child)];
            let row = next_place(starts, last[0]);
            column[row] = take(low(last[1]), low(link), low(flags).to_le_bytes()[0]);
        });
        column
    }
}

impl GatheredLocations {
    pub(super) const fn len(&self) -> usize {
        self.in_order.rows.len() + self.late.rows.len()
    }

    #[inline]
    pub(super) fn push(&mut self, row: &LocationRow) {
        let is_late = u64::from(row.node) < self.in_order.last[1];
        if is_late { &mut self.late } else { &mut self.in_order }.push(row);
    }

    /// Sorts by node.
    pub(super) fn into_columns(self, storage: GraphStorage) -> LocationColumns {
        let mut table = LocationTable::new(storage, self.len());
        let mut late = Vec::with_capacity(self.late.rows.len());
        self.late.take_each(|row| late.push(row));
        late.sort_by_key(|row| row.node);
        let mut late = late.iter().peekable();
        self.in_order.take_each(|row| {
            while let Some(late) = late.next_if(|late| late.node < row.node) {
                table.push(late);
            }
            table.push(&row);
        });
        late.for_each(|row| table.push(row));
        table.finish()
    }
}

impl LocationRows {
    #[inline]
    fn push(&mut self, row: &LocationRow) {
        let LocationShape { size, class, refcount, type_info, bin_overhead, location_type, region } =
            row.shape;
        let place = [row.address, row.node.into()];
        let [address, node] = [0, 1].map(|at| step(self.last[at], place[at]));
        let [class, string] = [class, row.string].map(|string| u64::from(string.wrapping_add(1)));
        let [refcount, type_info, overhead] = [refcount, type_info, bin_overhead].map(u64::from);
        let [kind, region] = [location_type, region.wrapping_add(1)].map(u64::from);
        self.rows.push([address, node, size, class, string, refcount, type_info, overhead, kind, region]);
        self.last = place;
    }

    fn take_each(self, mut take: impl FnMut(LocationRow)) {
        let mut last = [0; 2];
        self.rows.take_each(|numbers| {
            let [address, node, size, class, string, refcount, type_info, overhead, kind, region] = numbers;
            last = [stepped(last[0], address), stepped(last[1], node)];
            let [class, string] = [class, string].map(|string| low(string).wrapping_sub(1));
            let shape = LocationShape {
                size,
                class,
                refcount: low(refcount),
                type_info: low(type_info),
                bin_overhead: low(overhead),
                location_type: lowest(kind),
                region: lowest(region).wrapping_sub(1),
            };
            take(LocationRow { node: low(last[1]), address: last[0], string, shape });
        });
    }
}

impl GatheredAttributes {
    pub(super) const fn len(&self) -> usize {
        self.in_order.rows.len() + self.late.rows.len()
    }

    pub(super) fn push(&mut self, node: NodeId, attribute: NodeAttribute) {
        let node = u64::from(node.0);
        let is_late = node < self.in_order.last;
        if is_late { &mut self.late } else { &mut self.in_order }.push(node, attribute);
    }

    /// Sorts by node. Facts may come late, such as an array's count after its elements.
    pub(super) fn into_columns(self, storage: GraphStorage) -> AttributeColumns {
        let [mut nodes, mut keys, mut values] = [0; 3].map(|_| ColumnBuilder::new(storage, self.len()));
        let mut kinds = ColumnBuilder::new(storage, self.len());
        let mut put = |(node, attribute): (u32, NodeAttribute)| {
            nodes.push(node);
            keys.push(attribute.key.0);
            values.push(attribute.value.0);
            kinds.push(attribute.kind as u8);
        };
        let mut late = Vec::with_capacity(self.late.rows.len());
        self.late.take_each(|row| late.push(row));
        late.sort_by_key(|(node, _)| *node);
        let mut late = late.into_iter().peekable();
        self.in_order.take_each(|row| {
            while let Some(late) = late.next_if(|(node, _)| *node < row.0) {
                put(late);
            }
            put(row);
        });
        late.for_each(put);
        let [nodes, keys, values] = [nodes, keys, values].map(ColumnBuilder::finish);
        AttributeColumns { nodes, keys, values, kinds: kinds.finish() }
    }
}

impl AttributeRows {
    fn push(&mut self, node: u64, NodeAttribute { key, value, kind }: NodeAttribute) {
        self.rows.push([step(self.last, node), key.0.into(), value.0.into(), kind as u64]);
        self.last = node;
    }

    fn take_each(self, mut take: impl FnMut((u32, NodeAttribute))) {
        let mut node = 0;
        self.rows.take_each(|[step, key, value, kind]| {
            node = stepped(node, step);
            let kind = ValueKind::ALL.get(index(kind)).copied().unwrap_or(ValueKind::Null);
            take((low(node), NodeAttribute { key: StringId(low(key)), value: StringId(low(value)), kind }));
        });
    }
}

fn add_up(counts: &mut [u32]) {
    for entry in 1..counts.len() {
        counts[entry] += counts[entry - 1];
    }
}

/// Turns the ends of all nodes' rows into their starts again.
fn begin_again(ends: &mut [u32]) {
    ends.copy_within(..ends.len() - 1, 1);
    ends[0] = 0;
}

/// The row of the next thing of `node`; the entry of the node then names the row after it.
#[inline]
fn next_place(starts: &mut [u32], node: u64) -> usize {
    let next = &mut starts[index(node)];
    *next += 1;
    (*next - 1) as usize
}

/// Nodes and rows have at most 32 bits.
#[inline]
const fn index(number: u64) -> usize {
    low(number) as usize
}

#[inline]
const fn low(number: u64) -> u32 {
    (number & 0xffff_ffff) as u32
}

#[inline]
const fn lowest(number: u64) -> u16 {
    (number & 0xffff) as u16
}
