//! The locations of a graph in columns.
//!
//! Most locations differ from others only in their node, address and string: what else there is about them is stored once for all
//! that are alike.

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

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

/// What many locations have in common.
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
    pub(super) nodes: Vec<u32>,
    addresses: Vec<u64>,
    strings: Vec<u32>,
    /// The index in `shapes` of each location.
    numbers: Vec<u32>,
    shapes: Vec<LocationShape>,
}

/// Builds [`LocationColumns`].
pub(super) struct LocationTable {
    columns: LocationColumns,
    /// The shapes by hash: their indexes.
    index: HashTable<u32>,
    hasher: hashbrown::DefaultHashBuilder,
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
    /// Creates a table with room for so many locations.
    pub(super) fn with_capacity(count: usize) -> Self {
        let columns = LocationColumns {
            nodes: Vec::with_capacity(count),
            addresses: Vec::with_capacity(count),
            strings: Vec::with_capacity(count),
            numbers: Vec::with_capacity(count),
            shapes: Vec::new(),
        };
        Self { columns, index: HashTable::new(), hasher: hashbrown::DefaultHashBuilder::default() }
    }

    /// Adds a location of the same node as the last, or of a later one.
    pub(super) fn push(&mut self, row: &LocationRow) {
        let Self { columns, index, hasher } = self;
        let shapes = &mut columns.shapes;
        let hash = |shape: &LocationShape| std::hash::BuildHasher::hash_one(&*hasher, shape);
        let same = |&number: &u32| shapes[number as usize] == row.shape;
        let number = match index.entry(hash(&row.shape), same, |&number| hash(&shapes[number as usize])) {
            Entry::Occupied(entry) => *entry.get(),
            Entry::Vacant(entry) => {
                let number = u32::try_from(shapes.len()).expect("at most one for each location");
                entry.insert(number);
                shapes.push(row.shape);
                number
            }
        };
        columns.nodes.push(row.node);
        columns.addresses.push(row.address);
        columns.strings.push(row.string);
        columns.numbers.push(number);
    }

    pub(super) fn into_columns(mut self) -> LocationColumns {
        self.columns.shapes.shrink_to_fit();
        self.columns
    }
}

impl LocationColumns {
    pub(super) const fn len(&self) -> usize {
        self.nodes.len()
    }

    /// The location in a row; `None` if there is none.
    pub(super) fn get(&self, row: usize) -> Option<MemoryLocation> {
        self.row(row).map(|row| row.location())
    }

    fn row(&self, row: usize) -> Option<LocationRow> {
        let number = *self.numbers.get(row)? as usize;
        Some(LocationRow {
            node: *self.nodes.get(row)?,
            address: *self.addresses.get(row)?,
            string: *self.strings.get(row)?,
            shape: *self.shapes.get(number)?,
        })
    }

    /// The addresses of all locations, with their nodes.
    pub(super) fn places(&self) -> impl Iterator<Item = (u64, u32)> + Clone {
        self.addresses.iter().copied().zip(self.nodes.iter().copied())
    }

    /// The number of bytes of memory that they take.
    pub(super) fn memory_bytes(&self) -> usize {
        self.len() * 20 + size_of_val(self.shapes.as_slice())
    }
}

/// Compares the locations, in whichever order their shapes were met.
impl PartialEq for LocationColumns {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && (0..self.len()).all(|row| self.row(row) == other.row(row))
    }
}

impl Eq for LocationColumns {}
