//! Compression of many small blocks: the contexts of Zstandard are kept, because to create one takes longer than to use it.
//! Without Zstandard, which needs a C compiler, blocks stay as they are.

#[cfg(feature = "zstd")]
use std::cell::RefCell;

#[cfg(feature = "zstd")]
use zstd::bulk::{Compressor, Decompressor};

#[cfg(feature = "zstd")]
thread_local! {
    static COMPRESSOR: RefCell<Compressor<'static>> = RefCell::default();
    static DECOMPRESSOR: RefCell<Decompressor<'static>> = RefCell::default();
}

/// Compresses `bytes`.
#[cfg(feature = "zstd")]
pub(super) fn compress(bytes: &[u8], level: i32) -> Vec<u8> {
    COMPRESSOR.with_borrow_mut(|compressor| {
        compressor.set_compression_level(level).expect("a level that Zstandard has");
        compressor.compress(bytes).expect("room for the worst case")
    })
}

#[cfg(not(feature = "zstd"))]
pub(super) fn compress(bytes: &[u8], _level: i32) -> Vec<u8> {
    bytes.to_vec()
}

/// The most bytes that [`compress`] makes of `count`.
pub(super) const fn most_compressed(count: usize) -> usize {
    // The bound of Zstandard for blocks of any size.
    count + (count >> 8) + 512
}

/// Unpacks what [`compress`] has made of `count` bytes.
#[cfg(feature = "zstd")]
pub(super) fn decompress(compressed: &[u8], count: usize) -> Vec<u8> {
    DECOMPRESSOR
        .with_borrow_mut(|decompressor| decompressor.decompress(compressed, count))
        .expect("what was compressed here")
}

#[cfg(not(feature = "zstd"))]
pub(super) fn decompress(compressed: &[u8], _count: usize) -> Vec<u8> {
    compressed.to_vec()
}
