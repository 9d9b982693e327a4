//! Internal to [Borehole](https://docs.rs/borehole), whose own crates alone depend on it. Its interface may change at any time.
//!
//! Bytes: cursors, varints and compressed envelopes, the lowest layer of Borehole.
//!
//! * [`Cursor`] reads. It borrows a slice, knows the slice's offset in its file, and every failed read reports its
//!   position and how many bytes were missing.
//! * [`put_varint`] and [`put_varint_signed`] write.
//!
//! * [`Envelope`](envelope::Envelope) reads plain bytes, gzip members and Zstandard frames as one stream, and [`Window`] slides
//!   over it. [`CompressedWriter`](envelope::CompressedWriter) writes in a [`Compression`].
//! * [`Decoded`](encoding::Decoded) turns UTF-16 and byte-order marks into plain UTF-8.
//! * [`Effort`] keeps a search behind damage linear in the length of its input.
//!
//! No memory is sized by a number in the input. This crate opens nothing and knows no format.

#![forbid(unsafe_code)]

mod compression;
mod cursor;
mod effort;
pub mod encoding;
#[cfg(feature = "gzip")]
pub mod envelope;
mod varint;
#[cfg(feature = "gzip")]
mod window;
mod write_out;

pub use compression::Compression;
pub use cursor::{Cursor, Error, ErrorKind};
pub use effort::Effort;
#[cfg(feature = "zstd")]
pub use envelope::zstd;
pub use varint::{MAX_VARINT_BYTES, put_varint, put_varint_signed, varint_len};
#[cfg(feature = "gzip")]
pub use window::Window;
pub use write_out::write_out;
