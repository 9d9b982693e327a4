//! Reads other processes: their memory, mappings, threads and symbols.
//!
//! Code that walks the structures of an interpreter uses only [`Memory`] and [`Target`], so that the same code reads a
//! live process, a core file and a recorded image.
//!
//! Promises: the other process is only read; a process stopped by [`Stopper`] is released on every exit path; no number
//! read from a process or a file decides the size of an allocation here.

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
