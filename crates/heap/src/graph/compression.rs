//! Compression of many small blocks: the contexts of Zstandard are kept, because to create one takes longer than to use it.

use std::cell::RefCell;

use zstd::bulk::{Compressor, Decompressor};

thread_local! {
    static COMPRESSOR: RefCell<Compressor<'static>> = RefCell::default();
    static DECOMPRESSOR: RefCell<Decompressor<'static>> = RefCell::default();
}

/// Compresses `bytes`.
pub(super) fn compress(bytes: &[u8], level: i32) -> Vec<u8> {
    COMPRESSOR.with_borrow_mut(|compressor| {
        compressor.set_compression_level(level).expect("a level that Zstandard has");
        compressor.compress(bytes).expect("room for the worst case")
    })
}

/// Unpacks what [`compress`] has made of `count` bytes.
pub(super) fn decompress(compressed: &[u8], count: usize) -> Vec<u8> {
    DECOMPRESSOR
        .with_borrow_mut(|decompressor| decompressor.decompress(compressed, count))
        .expect("what was compressed here")
}
