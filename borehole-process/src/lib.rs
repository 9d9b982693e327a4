//! Another process, seen from outside: its memory, its mappings, its threads and its symbols.
//!
//! What walks the structures of an interpreter is written against [`Memory`] alone, so that a live process, a core
//! file and a recorded image are read by the same code.

mod error;
mod maps;
mod memory;
mod symbols;
mod target;

pub use error::{Error, ErrorKind};
pub use maps::{Mapping, Mappings};
pub use memory::{Memory, Piece};
pub use symbols::{Symbol, Symbols, ThreadLocalBlock};
pub use target::Target;
