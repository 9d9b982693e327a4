//! Internal to [Borehole](https://docs.rs/borehole), whose own crates alone depend on it. Its interface may change at any time.
//!
//! Finds the functions, files and lines of addresses in native code.
//!
//! * A [`Symbolizer`] resolves addresses in [modules](Module): programs, libraries, or an image copied from memory. It reads
//!   ELF symbol tables and DWARF, in the module itself or in its separate debug file.
//! * [`AddressNames`] are sorted ranges with names: the kernel's symbols, and the map that a just-in-time compiler writes for
//!   perf.
//!
//! Every file belongs to somebody else. Only regular files are opened, and only if their build ID is the stated one is
//! anything in them believed. No number in a file decides the size of an allocation, and [`SymbolSettings::loaded_bytes`]
//! bounds what is held. Debug information is read with a budget of work, because a few bytes of it can name many others.

#![forbid(unsafe_code)]

mod address_names;
mod build_id;
mod code_symbols;
mod debug_files;
mod dwarf;
mod elf_image;
mod fault;
mod load;
mod module;
mod names;
mod section_reader;
mod symbolizer;

pub use address_names::AddressNames;
pub use build_id::{BuildId, build_id_of};
pub use fault::Unresolved;
pub use module::{CodeAddress, Module, SymbolDetail, SymbolFrame, SymbolSettings};
pub use symbolizer::{ModuleId, ModuleReport, Symbolizer};
