//! Functions, mappings and locations of documents that number them.
//!
//! Samples of such a document refer to locations, locations to a mapping and to lines in functions, and all of them to
//! strings. One location has several lines where functions are inlined. The messages differ only in how they are
//! numbered, see [`SymbolKeys`](layout::SymbolKeys).

pub(crate) mod fill;
pub(crate) mod layout;
pub(crate) mod read;
pub(crate) mod resolve;
pub(crate) mod tables;
