//! Rows of numbers that need few bytes, for what a walk adds until the graph is built.
//!
//! While a heap is walked, its memory takes most of what there is, so the rows of the graph are packed: the nodes of a
//! heap and their addresses mostly ascend in small steps, and most numbers are small. Many rows are alike too, so full pieces
//! are compressed.

use super::compression::{compress, decompress, most_compressed};

/// Rows of `N` numbers, at most 16, in the order of their addition.
///
/// A row begins with the number of bytes of each number, in four bits. The numbers follow without their upper zeros.
#[derive(Debug, Default)]
pub(super) struct PackedRows<const N: usize> {
    /// Compressed pieces, one after the other in allocations of [`CHUNK_BYTES`].
    chunks: Vec<Chunk>,
    /// The last piece, which is not full; empty before the first row.
    last: RowPiece,
    rows: usize,
}

/// An allocation of compressed pieces.
#[derive(Debug, Default)]
struct Chunk {
    bytes: Vec<u8>,
    pieces: Vec<CompressedPiece>,
}

/// The length of a compressed piece, and of the piece itself.
#[derive(Clone, Copy, Debug)]
struct CompressedPiece {
    bytes: usize,
    end: usize,
    rows: usize,
}

/// The rows that are compressed together.
#[derive(Debug, Default)]
struct RowPiece {
    bytes: Vec<u8>,
    end: usize,
    rows: usize,
}

/// So large that the allocator gets its memory from the system, page by page when it is written, and gives it back when it is
/// freed: glibc keeps smaller allocations.
///
/// Source: glibc, `malloc/malloc.c`, `DEFAULT_MMAP_THRESHOLD_MAX`: 32 MiB.
const CHUNK_BYTES: usize = 33 << 20;

/// The size of a piece before it is compressed: small enough for the processor's cache.
const PIECE_BYTES: usize = 1 << 18;

/// The compression level: the fastest, because the rows are packed already.
const LEVEL: i32 = -1;

/// Numbers are written and read as eight bytes, whatever their length.
const WORD_BYTES: usize = 8;

impl<const N: usize> PackedRows<N> {
    const LENGTHS_BYTES: usize = N.div_ceil(2);
    const MAX_ROW_BYTES: usize = Self::LENGTHS_BYTES + N * WORD_BYTES + WORD_BYTES;

    /// The number of rows.
    pub(super) const fn len(&self) -> usize {
        self.rows
    }

    #[inline]
    pub(super) fn push(&mut self, row: [u64; N]) {
        if self.last.bytes.len() - self.last.end < Self::MAX_ROW_BYTES {
            self.new_piece();
        }
        let piece = &mut self.last;
        let mut lengths = 0_u64;
        let mut at = piece.end + Self::LENGTHS_BYTES;
        for (place, number) in (0_u32..).zip(row) {
            let length = (u64::BITS - number.leading_zeros()).div_ceil(8);
            lengths |= u64::from(length) << (place * 4);
            piece.bytes[at..at + WORD_BYTES].copy_from_slice(&number.to_le_bytes());
            at += length as usize;
        }
        let lengths = lengths.to_le_bytes();
        piece.bytes[piece.end..][..Self::LENGTHS_BYTES].copy_from_slice(&lengths[..Self::LENGTHS_BYTES]);
        piece.end = at;
        piece.rows += 1;
        self.rows += 1;
    }

    /// Compresses the last piece, and makes room for the next one.
    #[cold]
    fn new_piece(&mut self) {
        if self.last.bytes.is_empty() {
            self.last.bytes = vec![0; PIECE_BYTES];
            return;
        }
        let RowPiece { bytes, end, rows } = &mut self.last;
        let most = most_compressed(*end);
        if self.chunks.last().is_none_or(|chunk| chunk.bytes.capacity() - chunk.bytes.len() < most) {
            self.chunks.push(Chunk { bytes: Vec::with_capacity(CHUNK_BYTES), pieces: Vec::new() });
        }
        let chunk = self.chunks.last_mut().expect("it was just added");
        let compressed = compress(&bytes[..*end], LEVEL);
        chunk.bytes.extend_from_slice(&compressed);
        chunk.pieces.push(CompressedPiece { bytes: compressed.len(), end: *end, rows: *rows });
        (*end, *rows) = (0, 0);
    }

    /// Passes each row to `take`.
    pub(super) fn each(&self, mut take: impl FnMut([u64; N])) {
        self.chunks.iter().for_each(|chunk| Self::each_of_chunk(chunk, &mut take));
        Self::each_of(&self.last.bytes, self.last.rows, &mut take);
    }

    /// Passes each row to `take`, and frees memory on the way.
    pub(super) fn take_each(self, mut take: impl FnMut([u64; N])) {
        self.chunks.into_iter().for_each(|chunk| Self::each_of_chunk(&chunk, &mut take));
        Self::each_of(&self.last.bytes, self.last.rows, &mut take);
    }

    fn each_of_chunk(chunk: &Chunk, take: &mut impl FnMut([u64; N])) {
        let mut left = chunk.bytes.as_slice();
        for CompressedPiece { bytes, end, rows } in &chunk.pieces {
            let (compressed, behind) = left.split_at(*bytes);
            left = behind;
            let mut piece = decompress(compressed, *end);
            // Numbers are read as words.
            piece.resize(end + WORD_BYTES, 0);
            Self::each_of(&piece, *rows, take);
        }
    }

    #[inline]
    fn each_of(bytes: &[u8], rows: usize, take: &mut impl FnMut([u64; N])) {
        let word =
            |at: usize| u64::from_le_bytes(*bytes[at..].first_chunk().expect("a word more than the rows"));
        let mut at = 0;
        for _ in 0..rows {
            let mut lengths = word(at);
            at += Self::LENGTHS_BYTES;
            take(std::array::from_fn(|_| {
                let length = (lengths & 15) as u32;
                lengths >>= 4;
                let number = word(at) & u64::MAX.unbounded_shr(u64::BITS - length * 8);
                at += length as usize;
                number
            }));
        }
    }
}

/// A number that is small if `to` is close to `from`.
#[inline]
pub(super) const fn step(from: u64, to: u64) -> u64 {
    let distance = to.wrapping_sub(from).cast_signed();
    (distance << 1 ^ distance >> 63).cast_unsigned()
}

/// The number that is `step` from `from`.
#[inline]
pub(super) const fn stepped(from: u64, step: u64) -> u64 {
    let sign = (step & 1).cast_signed();
    from.wrapping_add((step >> 1) ^ sign.wrapping_neg().cast_unsigned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_back_in_order_whatever_their_numbers() {
        let number = |row: u64, place: u64| match (row + place) % 5 {
            0 => 0,
            1 => row,
            2 => u64::MAX - row * place,
            3 => 1 << (row % 64),
            _ => (1 << (row % 64)) - 1,
        };
        let rows: Vec<[u64; 5]> =
            (0..80_000).map(|row| [0, 1, 2, 3, 4].map(|place| number(row, place))).collect();
        let mut packed = PackedRows::default();
        rows.iter().for_each(|&row| packed.push(row));
        assert!(packed.chunks[0].pieces.len() > 1);
        assert_eq!(packed.len(), rows.len());
        let mut found = Vec::new();
        packed.each(|row| found.push(row));
        assert_eq!(found, rows);
        found.clear();
        packed.take_each(|row| found.push(row));
        assert_eq!(found, rows);
    }

    #[test]
    fn small_steps_are_small_numbers() {
        assert_eq!([step(7, 7), step(7, 6), step(7, 8), step(0, u64::MAX)], [0, 1, 2, 1]);
        let numbers = [0, 1, 1 << 40, u64::MAX / 2, u64::MAX / 2 + 1, u64::MAX - 1, u64::MAX];
        for from in numbers {
            for to in numbers {
                assert_eq!(stepped(from, step(from, to)), to);
            }
        }
    }
}
