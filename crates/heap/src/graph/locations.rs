//! The locations of a graph in columns.
//!
//! Most locations differ from others only in their node, address and string: what else there is about them is stored once for all
//! that are alike.

use std::hash::BuildHasher as _;

use hashbrown::hash_table::Entry;
use hashbrown::{DefaultHashBuilder, HashTable};

use super::column::{Column, ColumnBuilder, GraphStorage};
use crate::names::{LocationType, Region};
use crate::sink::{MemoryLocation, NodeId, StringId};

/// A stored location: `u16::MAX` means no region, and `u32::MAX` no class or string. If count and type are both 0, both are absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LocationRow {
    pub(super) node: u32,
    pub(super) address: u64,
    pub(super) string: u32,
    pub(super) shape: LocationShape,
}

/// The part of locations that many have in common.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct LocationShape {
    pub(super) size: u64,
    pub(super) class: u32,
    pub(super) refcount: u32,
    pub(super) type_info: u32,
    pub(super) bin_overhead: u32,
    pub(super) location_type: u16,
    pub(super) region: u16,
}

/// Locations, sorted by node.
#[derive(Clone, Debug, Default)]
pub(super) struct LocationColumns {
    nodes: Column<u32>,
    addresses: Column<u64>,
    strings: Column<u32>,
    /// The index in `shapes` of each location.
    numbers: Column<u32>,
    shapes: Vec<LocationShape>,
}

/// Builds [`LocationColumns`].
pub(super) struct LocationTable {
    nodes: ColumnBuilder<u32>,
    addresses: ColumnBuilder<u64>,
    strings: ColumnBuilder<u32>,
    numbers: ColumnBuilder<u32>,
    shapes: Vec<LocationShape>,
    /// The shapes by hash: their indexes.
    index: HashTable<u32>,
    hasher: DefaultHashBuilder,
}

impl LocationRow {
    pub(super) fn new(node: NodeId, location: &MemoryLocation) -> Self {
        Self {
            node: node.0,
            address: location.address,
            string: location.string.map_or(u32::MAX, |string| string.0),
            shape: LocationShape {
                size: location.size,
                class: location.class.map_or(u32::MAX, |class| class.0),
                refcount: location.refcount.unwrap_or_default(),
                type_info: location.type_info.unwrap_or_default(),
                bin_overhead: location.bin_overhead,
                location_type: location.location_type.number(),
                region: location.region.map_or(u16::MAX, Region::number),
            },
        }
    }

    fn location(&self) -> MemoryLocation {
        let Self { address, string, shape, .. } = *self;
        let is_counted = shape.refcount != 0 || shape.type_info != 0;
        MemoryLocation {
            location_type: LocationType::new(shape.location_type),
            address,
            size: shape.size,
            bin_overhead: shape.bin_overhead,
            class: (shape.class != u32::MAX).then_some(StringId(shape.class)),
            string: (string != u32::MAX).then_some(StringId(string)),
            refcount: is_counted.then_some(shape.refcount),
            type_info: is_counted.then_some(shape.type_info),
            region: (shape.region != u16::MAX).then(|| Region::new(shape.region)),
        }
    }
}

impl LocationTable {
    /// Creates a table for so many locations.
    pub(super) fn new(storage: GraphStorage, count: usize) -> Self {
        Self {
            nodes: ColumnBuilder::new(storage, count),
            addresses: ColumnBuilder::new(storage, count),
            strings: ColumnBuilder::new(storage, count),
            numbers: ColumnBuilder::new(storage, count),
            shapes: Vec::new(),
            index: HashTable::new(),
            hasher: DefaultHashBuilder::default(),
        }
    }

    /// Adds a location of the same node as the last, or of a later one.
    pub(super) fn push(&mut self, row: &LocationRow) {
        let number = self.number(&row.shape);
        self.nodes.push(row.node);
        self.addresses.push(row.address);
        self.strings.push(row.string);
        self.numbers.push(number);
    }

    fn number(&mut self, shape: &LocationShape) -> u32 {
        let Self { shapes, index, hasher, .. } = self;
        let same = |&number: &u32| shapes[number as usize] == *shape;
        match index.entry(hasher.hash_one(shape), same, |&number| hasher.hash_one(shapes[number as usize])) {
            Entry::Occupied(entry) => *entry.get(),
            Entry::Vacant(entry) => {
                let number = u32::try_from(shapes.len()).expect("at most one for each location");
                entry.insert(number);
                shapes.push(*shape);
                number
            }
        }
    }

    pub(super) fn finish(mut self) -> LocationColumns {
        self.shapes.shrink_to_fit();
        LocationColumns {
            nodes: self.nodes.finish(),
            addresses: self.addresses.finish(),
            strings: self.strings.finish(),
            numbers: self.numbers.finish(),
            shapes: self.shapes,
        }
    }
}

impl LocationColumns {
    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// The location in a row; `None` if there is none.
    pub(super) fn get(&self, row: usize) -> Option<MemoryLocation> {
        self.row(row).map(|row| row.location())
    }

    fn row(&self, row: usize) -> Option<LocationRow> {
        let number = self.numbers.get(row)? as usize;
        Some(LocationRow {
            node: self.nodes.get(row)?,
            address: self.addresses.get(row)?,
            string: self.strings.get(row)?,
            shape: *self.shapes.get(number)?,
        })
    }

    /// The node of a row; the maximum of 32 bits if there is none.
    #[inline]
    pub(super) fn node(&self, row: usize) -> u32 {
        self.nodes.get(row).unwrap_or(u32::MAX)
    }

    /// The nodes of all rows.
    pub(super) fn nodes(&self) -> impl Iterator<Item = u32> {
        self.nodes.iter()
    }

    /// The addresses of all locations, with their nodes.
    pub(super) fn places(&self) -> impl Iterator<Item = (u64, u32)> + Clone {
        self.addresses.iter().zip(self.nodes.iter())
    }

    /// The number of bytes of memory that they take.
    pub(super) fn memory_bytes(&self) -> usize {
        let numbers = [&self.nodes, &self.strings, &self.numbers].map(Column::memory_bytes);
        numbers.iter().sum::<usize>() + self.addresses.memory_bytes() + size_of_val(self.shapes.as_slice())
    }
}

/// Compares the locations, in whichever order their shapes were met.
impl PartialEq for LocationColumns {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && (0..self.len()).all(|row| self.row(row) == other.row(row))
    }
}

impl Eq for LocationColumns {}
