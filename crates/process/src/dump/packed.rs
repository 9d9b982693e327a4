//! Memory in compressed pieces, each of which is unpacked when it is read.
//!
//! The heap of a PHP process packs to a tenth or less, so a dump need not take the memory of the process a second time. Some
//! unpacked pieces are kept, because a walk of a heap returns to what it has read before.

use std::cell::RefCell;
use std::fmt;

use zstd::bulk::{Compressor, Decompressor};

/// The number of bytes of a piece. Larger ones pack better, but a walk that reads single values here and there unpacks more
/// than it reads.
pub const PIECE_BYTES: usize = 8 << 10;

/// A piece before it is packed.
pub type PieceBytes = [u8; PIECE_BYTES];

/// The compression level. Negative ones leave out the coding of single bytes, which takes most of the time of unpacking.
const LEVEL: i32 = -1;

/// The sizes of the first and of the further allocations for packed pieces. Those of more than 32 MiB are given back to the
/// system when they are freed, and the system gives the memory of a page when it is written.
///
/// Source: glibc, `malloc/malloc.c`, `DEFAULT_MMAP_THRESHOLD_MAX`: 32 MiB.
const CHUNK_BYTES: [usize; 2] = [1 << 20, 33 << 20];

/// The number of unpacked pieces in an allocation, which is so large that the system gets it back.
const SLAB: usize = CHUNK_BYTES[1] / PIECE_BYTES;

/// The number of unpacked pieces that are always kept.
const MIN_KEPT: usize = (8 << 20) / PIECE_BYTES;

/// Where the bytes of a packed piece are.
///
/// A length of 0 means that all bytes of the piece are 0, and [`PIECE_BYTES`] that it did not become smaller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoredPiece {
    chunk: u32,
    offset: u32,
    length: u32,
}

/// Packs pieces, one after the other.
pub struct Packer {
    compressor: Compressor<'static>,
    chunks: PackedChunks,
    packed: Vec<u8>,
}

/// The bytes of packed pieces.
#[derive(Clone, Default)]
pub struct PackedChunks(Vec<Vec<u8>>);

/// Where a [`PackedMemory`] has put the pieces of a packer.
#[derive(Clone, Copy, Debug, Default)]
pub struct AdoptedChunks {
    chunk: u32,
    offset: u32,
}

impl Default for Packer {
    fn default() -> Self {
        let compressor = Compressor::new(LEVEL).expect("a level that Zstandard has");
        Self { compressor, chunks: PackedChunks::default(), packed: Vec::with_capacity(PIECE_BYTES) }
    }
}

impl Packer {
    /// Packs a piece.
    pub fn pack(&mut self, piece: &PieceBytes) -> StoredPiece {
        if is_zero(piece) {
            return StoredPiece::default();
        }
        self.packed.clear();
        // There is only room for a result that is smaller.
        let is_packed = self.compressor.compress_to_buffer(piece, &mut self.packed).is_ok();
        let bytes = if is_packed { self.packed.as_slice() } else { piece.as_slice() };
        self.chunks.add(bytes)
    }

    /// Takes what was packed since the beginning, or since this was called before.
    pub fn take(&mut self) -> PackedChunks {
        let mut chunks = std::mem::take(&mut self.chunks);
        chunks.0.last_mut().into_iter().for_each(Vec::shrink_to_fit);
        chunks
    }
}

impl PackedChunks {
    fn add(&mut self, bytes: &[u8]) -> StoredPiece {
        if self.0.last().is_none_or(|chunk| chunk.capacity() - chunk.len() < bytes.len()) {
            let size = CHUNK_BYTES[usize::from(!self.0.is_empty())];
            self.0.push(Vec::with_capacity(size.max(bytes.len())));
        }
        let number = self.0.len() - 1;
        let chunk = &mut self.0[number];
        let index = |number: usize| u32::try_from(number).expect("chunks are few and small");
        let stored =
            StoredPiece { chunk: index(number), offset: index(chunk.len()), length: index(bytes.len()) };
        chunk.extend_from_slice(bytes);
        stored
    }

    fn get(&self, StoredPiece { chunk, offset, length }: StoredPiece) -> &[u8] {
        let (offset, length) = (offset as usize, length as usize);
        let chunk = self.0.get(chunk as usize);
        chunk.and_then(|chunk| chunk.get(offset..offset + length)).unwrap_or_default()
    }
}

/// Whether all bytes are 0.
fn is_zero(piece: &PieceBytes) -> bool {
    let (words, _) = piece.as_chunks::<64>();
    words.iter().all(|word| *word == [0; 64])
}

/// Packed memory: pieces of equal size, one after the other.
#[derive(Default)]
pub struct PackedMemory {
    chunks: PackedChunks,
    pieces: Vec<StoredPiece>,
    kept: RefCell<KeptPieces>,
}

/// Unpacked pieces, at most a number of them.
struct KeptPieces {
    unpacker: Decompressor<'static>,
    /// The index in `kept` plus 1 of each piece; 0: it is not kept.
    places: Vec<u32>,
    kept: Vec<KeptPiece>,
    /// The bytes of the kept pieces, one after the other in slabs.
    slabs: Vec<Vec<u8>>,
    /// A piece while it is unpacked.
    unpacked: Vec<u8>,
    /// The index of the next piece that may have to go.
    hand: usize,
    /// The maximum number of pieces.
    most: usize,
    /// The number of bytes that the program may hold before fewer pieces are kept.
    goal: usize,
}

struct KeptPiece {
    piece: usize,
    /// Whether it was read since `hand` passed it.
    is_used: bool,
}

impl Default for KeptPieces {
    fn default() -> Self {
        Self {
            unpacker: Decompressor::new().expect("no dictionary that could be wrong"),
            places: Vec::new(),
            kept: Vec::new(),
            slabs: Vec::new(),
            unpacked: Vec::with_capacity(PIECE_BYTES),
            hand: 0,
            most: MIN_KEPT,
            goal: usize::MAX,
        }
    }
}

impl PackedMemory {
    /// The number of pieces.
    #[must_use]
    pub fn len(&self) -> usize {
        self.pieces.len()
    }

    /// Whether it has no pieces.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// The number of bytes of the pieces when they are unpacked.
    #[must_use]
    pub fn unpacked_bytes(&self) -> usize {
        self.pieces.len() * PIECE_BYTES
    }

    /// The number of bytes that it takes, without unpacked pieces.
    #[must_use]
    pub fn stored_bytes(&self) -> usize {
        self.chunks.0.iter().map(Vec::len).sum::<usize>() + self.pieces.len() * size_of::<StoredPiece>()
    }

    /// Adds what a packer has packed, whose pieces can then be given to [`Self::push`].
    ///
    /// # Panics
    /// If there are 2^32 chunks.
    pub fn adopt(&mut self, packed: PackedChunks) -> AdoptedChunks {
        let PackedChunks(mut chunks) = packed;
        if let [small] = chunks.as_slice()
            && small.len() <= CHUNK_BYTES[0] / 2
        {
            let StoredPiece { chunk, offset, .. } = self.chunks.add(small);
            return AdoptedChunks { chunk, offset };
        }
        let chunk = u32::try_from(self.chunks.0.len()).expect("chunks are few");
        self.chunks.0.append(&mut chunks);
        AdoptedChunks { chunk, offset: 0 }
    }

    /// Adds a piece of a packer.
    pub fn push(&mut self, adopted: AdoptedChunks, piece: StoredPiece) {
        let place = StoredPiece {
            chunk: piece.chunk + adopted.chunk,
            offset: piece.offset + adopted.offset,
            ..piece
        };
        self.pieces.push(place);
    }

    /// Removes all pieces, to be given to [`Self::push`] in another order, with the place that is the default.
    pub fn take_pieces(&mut self) -> Vec<StoredPiece> {
        std::mem::take(&mut self.pieces)
    }

    /// Sets how many bytes of unpacked pieces are kept, and how many bytes the program may hold while more are kept.
    pub fn keep(&mut self, most_bytes: usize, goal: usize) {
        let kept = self.kept.get_mut();
        (kept.most, kept.goal) = ((most_bytes / PIECE_BYTES).max(MIN_KEPT), goal);
    }

    /// Copies the bytes from `offset` on, as far as they are in one piece. Returns their number.
    pub(super) fn copy(&self, offset: usize, into: &mut [u8]) -> usize {
        let (index, at) = (offset / PIECE_BYTES, offset % PIECE_BYTES);
        let length = into.len().min(PIECE_BYTES - at);
        let Some(piece) = self.pieces.get(index) else { return 0 };
        match usize::try_from(piece.length) {
            Ok(0) => into[..length].fill(0),
            Ok(PIECE_BYTES) => into[..length].copy_from_slice(&self.chunks.get(*piece)[at..at + length]),
            _ => into[..length].copy_from_slice(&self.kept.borrow_mut().get(self, index)[at..at + length]),
        }
        length
    }

    /// The `N` bytes at `offset`, which are in one piece.
    #[inline]
    pub(super) fn array<const N: usize>(&self, offset: usize) -> Option<[u8; N]> {
        let mut bytes = [0; N];
        (self.copy(offset, &mut bytes) == N).then_some(bytes)
    }
}

impl KeptPieces {
    /// The bytes of a piece.
    #[inline]
    fn get(&mut self, memory: &PackedMemory, piece: usize) -> &[u8] {
        let place = self.places.get(piece).copied().unwrap_or_default() as usize;
        let place = if place == 0 { self.unpack(memory, piece) } else { place - 1 };
        self.kept[place].is_used = true;
        &self.slabs[place / SLAB][place % SLAB * PIECE_BYTES..][..PIECE_BYTES]
    }

    #[cold]
    fn unpack(&mut self, memory: &PackedMemory, piece: usize) -> usize {
        self.places.resize(memory.pieces.len(), 0);
        let packed = memory.chunks.get(memory.pieces[piece]);
        self.unpacked.clear();
        self.unpacker.decompress_to_buffer(packed, &mut self.unpacked).expect("what was packed here");
        let place = self.make_room();
        self.kept[place].piece = piece;
        self.slabs[place / SLAB][place % SLAB * PIECE_BYTES..][..PIECE_BYTES].copy_from_slice(&self.unpacked);
        self.places[piece] = u32::try_from(place + 1).expect("pieces are counted in 32 bits");
        place
    }

    /// The index of a place for one more piece.
    fn make_room(&mut self) -> usize {
        let is_over = self.is_over_goal();
        // The rest of the program needs the memory.
        if is_over && self.slabs.len() > 1 {
            self.slabs.pop();
            for gone in self.kept.drain(self.slabs.len() * SLAB..) {
                self.places[gone.piece] = 0;
            }
            self.hand = 0;
        }
        if self.kept.len() < MIN_KEPT || (self.kept.len() < self.most && !is_over) {
            return self.add_place();
        }
        loop {
            self.hand = (self.hand + 1) % self.kept.len();
            let kept = &mut self.kept[self.hand];
            if !std::mem::replace(&mut kept.is_used, false) {
                self.places[kept.piece] = 0;
                return self.hand;
            }
        }
    }

    fn add_place(&mut self) -> usize {
        let place = self.kept.len();
        if place.is_multiple_of(SLAB) {
            self.slabs.push(Vec::with_capacity(SLAB * PIECE_BYTES));
        }
        let slab = &mut self.slabs[place / SLAB];
        slab.resize(slab.len() + PIECE_BYTES, 0);
        self.kept.push(KeptPiece { piece: 0, is_used: true });
        place
    }

    /// Whether the program holds more than it should, without the unwritten part of the last slab.
    fn is_over_goal(&self) -> bool {
        let unwritten = self.slabs.last().map_or(0, |slab| slab.capacity() - slab.len());
        borehole_memory::held().saturating_sub(unwritten) > self.goal
    }
}

impl Clone for PackedMemory {
    fn clone(&self) -> Self {
        Self { chunks: self.chunks.clone(), pieces: self.pieces.clone(), kept: RefCell::default() }
    }
}

impl fmt::Debug for PackedMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "PackedMemory {{ pieces: {}, stored_bytes: {}, .. }}",
            self.pieces.len(),
            self.stored_bytes()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pieces of zeros, of words that pack well, and of noise.
    fn piece(number: usize) -> PieceBytes {
        let mut state = number as u64 + 1;
        std::array::from_fn(|at| {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            match number % 3 {
                0 => 0,
                1 => (number + at / 64).to_le_bytes()[0],
                _ => state.to_le_bytes()[7],
            }
        })
    }

    fn packed(count: usize) -> PackedMemory {
        let mut memory = PackedMemory::default();
        for numbers in [0..count / 2, count / 2..count] {
            let mut packer = Packer::default();
            let pieces: Vec<_> = numbers.map(|number| packer.pack(&piece(number))).collect();
            let adopted = memory.adopt(packer.take());
            pieces.into_iter().for_each(|piece| memory.push(adopted, piece));
        }
        memory
    }

    #[test]
    fn pieces_come_back_whatever_is_kept() {
        let count = MIN_KEPT * 4;
        let memory = packed(count);
        for step in [1, 7, 311] {
            for number in (0..count).map(|number| number * step % count) {
                let expected = piece(number);
                for at in [0, 100, PIECE_BYTES - 8] {
                    let found: Option<[u8; 8]> = memory.array(number * PIECE_BYTES + at);
                    assert_eq!(found.as_ref().map(<[u8; 8]>::as_slice), expected.get(at..at + 8));
                }
            }
        }
        assert_eq!(memory.kept.borrow().kept.len(), MIN_KEPT);
        assert_eq!(memory.array::<8>(PIECE_BYTES - 4), None, "in two pieces");
        assert_eq!(memory.array::<8>(count * PIECE_BYTES), None, "behind the last");
    }

    #[test]
    fn zeros_take_no_memory_and_noise_little_more_than_itself() {
        let memory = packed(300);
        let noise = 100 * PIECE_BYTES;
        assert!((noise..noise + noise / 4).contains(&memory.stored_bytes()), "{memory:?}");
    }
}
