//! Columns of numbers: as they are, or compressed where memory is scarce.

use std::fmt;
use std::sync::{Mutex, PoisonError};

use super::compression::{compress, decompress};
use super::packed::{step, stepped};

/// How the columns of a graph are stored.
#[doc = crate::doc_graph::graph_example!(
    r#"use borehole_heap::GraphStorage;

let mut builder = GraphBuilder::new();
builder.node(NodeType::STRING);
let packed = builder.finish_as(GraphStorage::Packed)?;
assert_eq!(packed.counts().nodes, 1);"#
)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum GraphStorage {
    /// As they are: any row is found at once.
    #[default]
    Plain,
    /// Compressed in blocks, of which one is unpacked at a time: for a graph that is read in order.
    Packed,
}

/// A number in a column.
pub(super) trait Number: Copy + Default + PartialEq + fmt::Debug {
    /// The number of its bytes, and of its bits.
    const BYTES: usize;
    const BITS: u32;
    fn wide(self) -> u64;
    /// The number with the low bits of `wide`.
    fn narrow(wide: u64) -> Self;
}

macro_rules! number {
    ($($kind:ty)+) => {
        $(impl Number for $kind {
            const BYTES: usize = size_of::<Self>();
            const BITS: u32 = Self::BITS;

            #[inline]
            fn wide(self) -> u64 {
                self.into()
            }

            #[inline]
            fn narrow(wide: u64) -> Self {
                let mut bytes = [0; size_of::<Self>()];
                bytes.copy_from_slice(&wide.to_le_bytes()[..size_of::<Self>()]);
                Self::from_le_bytes(bytes)
            }
        })+
    };
}

number! { u8 u16 u32 u64 }

/// Numbers by row.
#[derive(Clone)]
pub(super) enum Column<T> {
    Plain(Vec<T>),
    Packed(PackedColumn<T>),
}

/// Numbers in compressed blocks.
pub(super) struct PackedColumn<T> {
    length: usize,
    /// The blocks, one after the other in allocations of some size.
    chunks: Vec<Vec<u8>>,
    /// The chunk of each block, and the range in it.
    blocks: Vec<(u32, u32, u32)>,
    /// The number of the block that is unpacked, plus 1, with its content.
    unpacked: Mutex<(usize, Vec<T>)>,
}

impl<T> Clone for PackedColumn<T> {
    fn clone(&self) -> Self {
        let (chunks, blocks) = (self.chunks.clone(), self.blocks.clone());
        Self { length: self.length, chunks, blocks, unpacked: Mutex::new((0, Vec::new())) }
    }
}

/// Fills a column.
pub(super) struct ColumnBuilder<T> {
    column: Column<T>,
    /// The last numbers, which are not in a block yet.
    last: Vec<T>,
    planes: Vec<u8>,
}

/// The number of numbers in a block.
const BLOCK: usize = 4096;

/// The compression level.
const LEVEL: i32 = 1;

/// See [`super::packed`] for the size.
const CHUNK_BYTES: usize = 33 << 20;

impl<T> Default for Column<T> {
    fn default() -> Self {
        Self::Plain(Vec::new())
    }
}

impl<T: Number> Column<T> {
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Plain(numbers) => numbers.len(),
            Self::Packed(packed) => packed.length,
        }
    }

    #[inline]
    pub(super) fn get(&self, row: usize) -> Option<T> {
        match self {
            Self::Plain(numbers) => numbers.get(row).copied(),
            Self::Packed(packed) => packed.get(row),
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = T> + Clone {
        (0..self.len()).map(|row| self.get(row).unwrap_or_default())
    }

    /// The number of bytes of memory that it takes.
    pub(super) fn memory_bytes(&self) -> usize {
        match self {
            Self::Plain(numbers) => size_of_val(numbers.as_slice()),
            Self::Packed(packed) => {
                packed.chunks.iter().map(Vec::len).sum::<usize>() + packed.blocks.len() * 12
            }
        }
    }

    /// Stores numbers in the way that is asked for.
    pub(super) fn stored(numbers: Vec<T>, storage: GraphStorage) -> Self {
        if storage == GraphStorage::Plain {
            return Self::Plain(numbers);
        }
        let mut builder = ColumnBuilder::new(storage, numbers.len());
        numbers.into_iter().for_each(|number| builder.push(number));
        builder.finish()
    }
}

impl<T: Number> PackedColumn<T> {
    fn get(&self, row: usize) -> Option<T> {
        if row >= self.length {
            return None;
        }
        let mut unpacked = self.unpacked.lock().unwrap_or_else(PoisonError::into_inner);
        let (number, numbers) = &mut *unpacked;
        if *number != row / BLOCK + 1 {
            *number = row / BLOCK + 1;
            self.unpack(row / BLOCK, numbers);
        }
        numbers.get(row % BLOCK).copied()
    }

    fn unpack(&self, block: usize, into: &mut Vec<T>) {
        let (chunk, start, end) = self.blocks[block];
        let packed = &self.chunks[chunk as usize][start as usize..end as usize];
        let count = BLOCK.min(self.length - block * BLOCK);
        let planes = decompress(packed, count * T::BYTES);
        into.clear();
        let mut last = 0;
        for row in 0..count {
            let mut word = [0; 8];
            for (place, byte) in word.iter_mut().enumerate().take(T::BYTES) {
                *byte = planes[place * count + row];
            }
            last = stepped(last, u64::from_le_bytes(word));
            into.push(T::narrow(last));
        }
    }
}

impl<T: Number> ColumnBuilder<T> {
    pub(super) fn new(storage: GraphStorage, count: usize) -> Self {
        let (column, last) = match storage {
            GraphStorage::Plain => (Column::Plain(Vec::with_capacity(count)), Vec::new()),
            GraphStorage::Packed => {
                let unpacked = Mutex::default();
                let packed = PackedColumn { length: 0, chunks: Vec::new(), blocks: Vec::new(), unpacked };
                (Column::Packed(packed), Vec::with_capacity(BLOCK))
            }
        };
        Self { column, last, planes: Vec::new() }
    }

    #[inline]
    pub(super) fn push(&mut self, number: T) {
        match &mut self.column {
            Column::Plain(numbers) => numbers.push(number),
            Column::Packed(_) => {
                self.last.push(number);
                if self.last.len() == BLOCK {
                    self.end_block();
                }
            }
        }
    }

    /// Compresses the last numbers: what each differs from the one before, first all lowest bytes, then all second ones, and so on.
    fn end_block(&mut self) {
        let Column::Packed(packed) = &mut self.column else { return };
        let count = self.last.len();
        self.planes.clear();
        self.planes.resize(count * T::BYTES, 0);
        let mut before = 0;
        for (row, number) in self.last.iter().enumerate() {
            // The step fits: it is taken within the numbers of this size.
            let word = narrow_step::<T>(before, number.wide()).to_le_bytes();
            for (place, byte) in word.iter().enumerate().take(T::BYTES) {
                self.planes[place * count + row] = *byte;
            }
            before = number.wide();
        }
        let bytes = compress(&self.planes, LEVEL);
        if packed.chunks.last().is_none_or(|chunk| chunk.capacity() - chunk.len() < bytes.len()) {
            packed.chunks.push(Vec::with_capacity(if packed.chunks.is_empty() {
                1 << 20
            } else {
                CHUNK_BYTES
            }));
        }
        let number = packed.chunks.len() - 1;
        let chunk = &mut packed.chunks[number];
        let index = |number: usize| u32::try_from(number).expect("chunks are few and small");
        packed.blocks.push((index(number), index(chunk.len()), index(chunk.len() + bytes.len())));
        chunk.extend_from_slice(&bytes);
        packed.length += count;
        self.last.clear();
    }

    pub(super) fn finish(mut self) -> Column<T> {
        if !self.last.is_empty() {
            self.end_block();
        }
        if let Column::Packed(packed) = &mut self.column {
            packed.chunks.last_mut().into_iter().for_each(Vec::shrink_to_fit);
        }
        self.column
    }
}

/// The step from a number to another, as wide as they are.
#[inline]
fn narrow_step<T: Number>(from: u64, to: u64) -> u64 {
    // Sign-extended: the shortest way around within the numbers of this size.
    let shift = u64::BITS - T::BITS;
    let distance = (to.wrapping_sub(from) << shift).cast_signed() >> shift;
    step(0, distance.cast_unsigned())
}

impl<T: Number> PartialEq for Column<T> {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.iter().eq(other.iter())
    }
}

impl<T: Number> Eq for Column<T> {}

impl<T: Number> fmt::Debug for Column<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn comes_back<T: Number>(wide: impl Fn(u64) -> u64) {
        let numbers: Vec<T> = (0..10_000).map(|row| T::narrow(wide(row))).collect();
        let packed = Column::stored(numbers.clone(), GraphStorage::Packed);
        assert!(matches!(packed, Column::Packed(_)));
        assert_eq!(packed, Column::Plain(numbers.clone()));
        for row in [9999, 0, 4095, 4096, 8191, 5] {
            assert_eq!(packed.get(row), Some(numbers[row]));
        }
        assert_eq!((packed.len(), packed.get(10_000)), (10_000, None));
    }

    #[test]
    fn numbers_come_back_however_they_are_stored() {
        for wide in [
            |row: u64| row,
            |row: u64| u64::MAX - row * row,
            |row: u64| row.wrapping_mul(0x9e37_79b9_7f4a_7c15),
            |row: u64| if row.is_multiple_of(2) { 0 } else { u64::MAX },
        ] {
            comes_back::<u8>(wide);
            comes_back::<u16>(wide);
            comes_back::<u32>(wide);
            comes_back::<u64>(wide);
        }
        assert_eq!(Column::<u32>::stored(Vec::new(), GraphStorage::Packed).get(0), None);
    }

    #[test]
    fn ascending_numbers_take_little_memory() {
        let packed = Column::stored((0..1_000_000_u32).collect(), GraphStorage::Packed);
        assert!(packed.memory_bytes() < 100_000, "{}", packed.memory_bytes());
    }
}
