//! Packing and unpacking the content of blocks.

use zstd::bulk::{Compressor, Decompressor};

use super::layout::{MAX_CONTENT_BYTES, MAX_STORED_BYTES};

/// How hard the packing is tried. Measured with the heap of a million objects, 453 MB: level 1 packs it to 24 MB, level 3
/// to 22 MB at four fifths of the speed, level 9 to 20 MB at a tenth; below level 1 it is twice as large.
const LEVEL: i32 = 1;

/// What packs blocks.
///
/// # Panics
/// When there is no memory for it, which is how a program ends that has none.
pub(super) fn packer() -> impl FnMut(&[u8]) -> Vec<u8> {
    let mut packer = Compressor::new(LEVEL).expect("a level that Zstandard has");
    packer.include_checksum(true).expect("an option that Zstandard has");
    move |content| packer.compress(content).expect("room for the worst case, and nothing else can go wrong")
}

/// What unpacks blocks: it needs to be told the length, which is at most that of a block. `None` if the frame is damaged.
pub(super) fn unpacker() -> impl FnMut(&[u8], usize) -> Option<Vec<u8>> {
    let mut unpacker = Decompressor::new().expect("no dictionary that could be wrong");
    move |frame, length| {
        debug_assert!(length <= MAX_CONTENT_BYTES && frame.len() <= MAX_STORED_BYTES);
        let mut content = Vec::with_capacity(length);
        let unpacked = unpacker.decompress_to_buffer(frame, &mut content).ok()?;
        (unpacked == length).then_some(content)
    }
}
