//! Bytes to numbers and back: the lowest floor of Borehole.
//!
//! * [`Cursor`] reads: it borrows a slice, knows the slice's offset in its file, and every failed read
//!   says where it stood and how many bytes were missing.
//! * [`put_varint`] and [`put_varint_signed`] write.
//!
//! Nothing here allocates for what it reads, does I/O, or knows a format.

mod cursor;
mod varint;

pub use cursor::{Cursor, Error, ErrorKind};
pub use varint::{MAX_VARINT_BYTES, put_varint, put_varint_signed, varint_len};
