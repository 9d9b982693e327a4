//! Compression of the content of blocks.

use zstd::bulk::{Compressor, Decompressor};

use super::layout::{MAX_CONTENT_BYTES, MAX_STORED_BYTES};

/// The compression level. Measured with the heap of a million objects, 453 MB: level 1 packs it to 24 MB, level 3 to 22
/// MB at four fifths of the speed, level 9 to 20 MB at a tenth of it; below level 1 the result is twice as large.
const LEVEL: i32 = 1;

/// Creates a function that packs blocks.
///
/// # Panics
/// If memory is exhausted, like any allocation.
pub(super) fn packer() -> impl FnMut(&[u8]) -> Vec<u8> {
    let mut packer = Compressor::new(LEVEL).expect("a level that Zstandard has");
    packer.include_checksum(true).expect("an option that Zstandard has");
    move |content| packer.compress(content).expect("room for the worst case, and nothing else can go wrong")
}

/// Creates a function that unpacks a block of the given length, at most that of a block; `None` if the frame is damaged.
pub(super) fn unpacker() -> impl FnMut(&[u8], usize) -> Option<Vec<u8>> {
    let mut unpacker = Decompressor::new().expect("no dictionary that could be wrong");
    move |frame, length| {
        debug_assert!(length <= MAX_CONTENT_BYTES && frame.len() <= MAX_STORED_BYTES);
        let mut content = Vec::with_capacity(length);
        let unpacked = unpacker.decompress_to_buffer(frame, &mut content).ok()?;
        (unpacked == length).then_some(content)
    }
}
