//! Internal to [Borehole](https://docs.rs/borehole), whose own crates alone depend on it. Its interface may change at any time.
//!
//! Reads other processes: their memory, mappings, threads and symbols.
//!
//! Code that walks the structures of an interpreter uses only [`ForeignMemory`] and [`ForeignProcess`], so that the same code
//! reads a live process, a core file and a recorded image.
//!
//! Promises: the other process is only read; a process stopped by [`Stopper`] is released on every exit path; no number
//! read from a process or a file decides the size of an allocation here.

mod access;
mod core_file;
mod dump;
mod elf;
mod error;
mod family;
mod files;
mod find;
mod guard;
mod handle;
mod hold;
mod image;
mod launch;
mod limited;
mod live;
mod maps;
mod memory;
mod numbers;
mod open;
mod perf_events;
mod perf_record;
mod pidfd;
mod prefault;
mod ptrace;
mod registers;
mod resident;
mod scan;
mod signals;
mod symbols;
mod tracer;
mod transfer;

pub use access::{Obstacle, obstacles, ptrace_scope};
pub use core_file::CoreFile;
pub use dump::{
    AdoptedChunks, Dump, DumpRecovery, MemorySpan, PIECE_BYTES, PackedChunks, PackedMemory, Packer,
    PieceBytes, StoredPiece, Words,
};
pub use error::{Error, ErrorKind};
pub use files::ignores;
pub use find::{ListedProcess, ancestors, descendants, exists, listed, processes, program};
pub use guard::guard_holds;
pub use hold::suspend;
pub use image::{Image, ImageRecorder};
pub use launch::{Ending, Launched};
pub use live::Process;
pub use maps::{Mappings, MemoryMapping};
pub use memory::{ForeignMemory, ForeignProcess, MemoryPiece};
pub use numbers::{mapped, moved, read_some, u32_at, u64_at};
pub use open::{open_below, open_regular};
pub use perf_events::{KernelCode, PerfEvents, PerfTrigger};
pub use perf_record::{PerfRecord, PerfSample};
pub use prefault::{page_start, prefaulted};
pub use registers::Registers;
pub use resident::{PageSelection, Resident, resident_bytes};
pub use symbols::{ElfSymbol, ElfSymbols, ThreadLocalBlock};
pub use tracer::{Stopped, Stopper};
