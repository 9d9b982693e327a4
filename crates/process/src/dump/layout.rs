//! The file format of a dump.
//!
//! All numbers are little-endian.
//! ```text
//! file     8 bytes  the magic number: 7f "RDUMP" 0d 0a
//!          u32      the version: 1
//!          u32      0
//!          blocks up to the end
//!
//! block    u8       what it holds: see `BlockKind`
//!          3 bytes  0
//!          u32      S: how many bytes follow this header, at most 8 MiB
//!          u32      how many bytes they hold when they are unpacked, at most 4 MiB
//!          u32      CRC-32 of the twelve bytes before
//!          S bytes  one frame of Zstandard, with its checksum
//! ```
//! A block can be read without any other block. A reader skips unknown kinds. The unpacked content of each kind
//! follows; records follow each other up to the end of the block:
//! ```text
//! fact     text     name
//!          text     value
//! mapping  u64      first address
//!          u64      address after the last
//!          u64      offset in the file
//!          u8       flags: 1 readable, 2 writable, 4 executable, 8 shared, 16 deleted
//!          text     path
//! thread   u32      number
//!          u8       1 if its thread pointer is known, else 0
//!          u64      thread pointer
//! symbols  u64      first address of the mapping whose file has them; one in a block
//!          u8       1 if the file has thread-local storage, else 0
//!          u64      its size
//!          u64      its alignment
//!          symbols  up to the end
//! symbol   u64      address, or offset in the thread-local storage
//!          u64      size
//!          u8       1 if each thread has its own, else 0
//!          text     name
//! pages    u32      N; one in a block
//!          N spans  u64 address, u32 length
//!          bytes    of the spans, one after the other
//! memory   as `pages`
//! end      u64      how many blocks there are before it
//!
//! text     u32      length
//!          bytes
//! ```
//! Pages are memory that was read from files and from structures that do not change; memory was copied at one moment.
//! Spans ascend without overlaps, over all blocks of a kind; a span that begins at the end of the previous one
//! continues it. A file whose last block is not `end` is truncated.

use flate2::Crc;

/// The magic number. No text contains its first byte, and its last two bytes show whether line breaks were converted.
pub(super) const MAGIC: [u8; 8] = *b"\x7fRDUMP\r\n";

pub(super) const VERSION: u32 = 1;

pub(super) const FILE_HEADER_BYTES: usize = 16;

pub(super) const BLOCK_HEADER_BYTES: usize = 16;

/// Larger than the blocks written. It limits the memory that a reader needs for a block, whatever the file states.
pub(super) const MAX_CONTENT_BYTES: usize = 4 << 20;

pub(super) const MAX_STORED_BYTES: usize = 8 << 20;

/// The number of bytes of memory in a full block. Measured with the heap of a million objects, 453 MB: the file sizes
/// for blocks of 256 KiB, 1 MiB and 4 MiB differ by half a per cent each (24.2, 24.0, 23.9 MB). Larger blocks lose more
/// when a file is truncated, and take more memory while they are processed.
pub(super) const BLOCK_BYTES: usize = 1 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BlockKind {
    /// Marks a completely written file.
    End = 0,
    Facts = 1,
    Mappings = 2,
    Threads = 3,
    Symbols = 4,
    Pages = 5,
    Memory = 6,
}

impl BlockKind {
    const ALL: [Self; 7] =
        [Self::End, Self::Facts, Self::Mappings, Self::Threads, Self::Symbols, Self::Pages, Self::Memory];

    pub(super) fn of(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|&kind| kind as u8 == code)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BlockHeader {
    /// The code of its [`BlockKind`], which may be an unknown one.
    pub(super) kind: u8,
    pub(super) stored: usize,
    pub(super) content: usize,
}

impl BlockHeader {
    pub(super) fn encode(self) -> [u8; BLOCK_HEADER_BYTES] {
        let number = |bytes: usize| u32::try_from(bytes).expect("blocks are small").to_le_bytes();
        let mut header = [0; BLOCK_HEADER_BYTES];
        header[0] = self.kind;
        header[4..8].copy_from_slice(&number(self.stored));
        header[8..12].copy_from_slice(&number(self.content));
        let check = check(&header);
        header[12..].copy_from_slice(&check);
        header
    }

    pub(super) fn decode(header: &[u8; BLOCK_HEADER_BYTES]) -> Option<Self> {
        let number = |at: usize| {
            let bytes = header[at..].first_chunk().copied()?;
            usize::try_from(u32::from_le_bytes(bytes)).ok()
        };
        let block = Self { kind: header[0], stored: number(4)?, content: number(8)? };
        let is_valid = check(header) == header[12..]
            && block.stored <= MAX_STORED_BYTES
            && block.content <= MAX_CONTENT_BYTES;
        is_valid.then_some(block)
    }
}

fn check(header: &[u8; BLOCK_HEADER_BYTES]) -> [u8; 4] {
    let mut crc = Crc::new();
    crc.update(&header[..12]);
    crc.sum().to_le_bytes()
}

pub(super) fn file_header() -> [u8; FILE_HEADER_BYTES] {
    let mut header = [0; FILE_HEADER_BYTES];
    header[..8].copy_from_slice(&MAGIC);
    header[8..12].copy_from_slice(&VERSION.to_le_bytes());
    header
}
