//! Rows of numbers that need few bytes, for what a walk adds until the graph is built.
//!
//! While a heap is walked, its memory takes most of what there is, so the rows of the graph are packed: the nodes of a
//! heap and their addresses mostly ascend in small steps, and most numbers are small.

/// Rows of `N` numbers, at most 16, in the order of their addition.
///
/// A row begins with the number of bytes of each number, in four bits. The numbers follow without their upper zeros.
#[derive(Debug, Default)]
pub(super) struct PackedRows<const N: usize> {
    pieces: Vec<RowPiece>,
    rows: usize,
}

/// The rows that are in one allocation.
#[derive(Debug)]
struct RowPiece {
    bytes: Vec<u8>,
    end: usize,
    rows: usize,
}

/// So large that the allocator gets its memory from the system, page by page when it is written, and gives it back when it is
/// freed: glibc keeps smaller allocations.
///
/// Source: glibc, `malloc/malloc.c`, `DEFAULT_MMAP_THRESHOLD_MAX`: 32 MiB.
const PIECE_BYTES: usize = 33 << 20;

/// The size of the first piece, which is enough for a small graph: to get memory from the system takes longer than to fill it.
const FIRST_PIECE_BYTES: usize = 1 << 16;

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
        let piece = match self.pieces.last_mut() {
            Some(piece) if piece.bytes.len() - piece.end >= Self::MAX_ROW_BYTES => piece,
            _ => self.new_piece(),
        };
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

    #[cold]
    fn new_piece(&mut self) -> &mut RowPiece {
        let length = if self.pieces.is_empty() { FIRST_PIECE_BYTES } else { PIECE_BYTES };
        self.pieces.push(RowPiece { bytes: vec![0; length], end: 0, rows: 0 });
        self.pieces.last_mut().expect("it was just added")
    }

    /// Passes each row to `take`.
    pub(super) fn each(&self, mut take: impl FnMut([u64; N])) {
        self.pieces.iter().for_each(|piece| Self::each_of(piece, &mut take));
    }

    /// Passes each row to `take`, and frees memory on the way.
    pub(super) fn take_each(self, mut take: impl FnMut([u64; N])) {
        self.pieces.into_iter().for_each(|piece| Self::each_of(&piece, &mut take));
    }

    #[inline]
    fn each_of(piece: &RowPiece, take: &mut impl FnMut([u64; N])) {
        let word = |at: usize| {
            u64::from_le_bytes(*piece.bytes[at..].first_chunk().expect("a word more than the rows"))
        };
        let mut at = 0;
        for _ in 0..piece.rows {
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
            (0..20_000).map(|row| [0, 1, 2, 3, 4].map(|place| number(row, place))).collect();
        let mut packed = PackedRows::default();
        rows.iter().for_each(|&row| packed.push(row));
        assert!(packed.pieces.len() > 1);
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
