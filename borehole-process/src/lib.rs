//! Another process, seen from outside: its memory, its mappings, its threads and its symbols.
//!
//! What walks the structures of an interpreter is written against [`Memory`] and [`Target`] alone, so that a live
//! process, a core file and a recorded image are read by the same code.
//!
//! Promises: the other process is only read; what stops it ([`Stopper`]) lets it go on every way out; no number found in
//! it or in a file decides how much is allocated here.

mod access;
mod core_file;
mod dump;
mod elf;
mod error;
mod files;
mod find;
mod image;
mod launch;
mod live;
mod maps;
mod memory;
mod prefault;
mod ptrace;
mod record;
mod resident;
mod scan;
mod signals;
mod symbols;
mod target;
mod tracer;
mod transfer;

pub use access::{Obstacle, obstacles, ptrace_scope};
pub use core_file::Core;
pub use dump::{Dump, DumpRecovery, DumpWarning, Span};
pub use error::{Error, ErrorKind};
pub use find::{Candidate, descendants, exists, processes, program};
pub use image::Image;
pub use launch::Launched;
pub use live::Process;
pub use maps::{Mapping, Mappings};
pub use memory::{Memory, Piece};
pub use prefault::{page_start, prefaulted};
pub use record::Recorder;
pub use resident::{Pages, Resident, resident_bytes};
pub use signals::ignores;
pub use symbols::{Symbol, Symbols, ThreadLocalBlock};
pub use target::Target;
pub use tracer::{Stopped, Stopper};
