//! Bytes to numbers and back: the lowest layer of Borehole.
//!
//! * [`Cursor`] reads. It borrows a slice, knows the slice's offset in its file, and every failed read reports its
//!   position and how many bytes were missing.
//! * [`put_varint`] and [`put_varint_signed`] write.
//!
//! This crate allocates nothing for what it reads, does no I/O, and knows no format.

mod cursor;
mod varint;

pub use cursor::{Cursor, Error, ErrorKind};
pub use varint::{MAX_VARINT_BYTES, put_varint, put_varint_signed, varint_len};
