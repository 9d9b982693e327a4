//! Internal to [Borehole](https://docs.rs/borehole), whose own crates alone depend on it. Its interface may change at any time.
//!
//! The one home of how Borehole writes words and numbers: amounts, escapes, JSON and tables, and the
//! errors and warnings of its readers.
//!
//! Nothing here does I/O or knows a terminal: callers pass the width that a table is to fit.

#![forbid(unsafe_code)]

mod address;
mod amount;
mod digits;
mod error;
mod escape;
#[cfg(feature = "tables")]
mod fit;
mod json_ascii;
mod json_lines;
pub mod lossless;
mod names;
#[cfg(feature = "tables")]
mod table;
mod utc;
mod warning;

pub use address::without_passwords;
pub use amount::{bytes, counted, duration, grouped, nanoseconds_per, percent, percent_of, with_unit};
pub use digits::{IntegerDigits, put_decimal};
pub use error::{Error, ErrorKind, Position, ReadError, cause};
pub use escape::{
    document, make_line, make_lines, markup, printable, printable_lines, push_document, shell_bytes,
    shell_word,
};
#[cfg(feature = "tables")]
pub use fit::{KeptEnd, crop, crop_middle, pad, width};
pub use json_ascii::put_ascii_json;
pub use json_lines::LineWriter;
pub use names::UnknownName;
#[cfg(feature = "tables")]
pub use table::{TextColumn, TextTable, WIDEST_INNER, WIDEST_LAST};
pub use utc::iso_utc;
pub use warning::{Warning, WarningKind};
