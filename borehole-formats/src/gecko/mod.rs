//! The processed profiles of Firefox Profiler. They are written as CPython's `replay --gecko` does: a lane a thread, with
//! its samples, and with the stretches in which it had the GIL, was on a CPU, waited, or had an exception. They are read
//! whoever wrote them, in any version (`docs/formats/gecko.md`).
//!
//! Where `replay` is wrong, this is not: `docs/formats/tachyon.md` lists where the two differ.

mod document;
mod export;
mod import;
mod lane;
mod read;
mod state;
mod tables;
mod write;

pub use export::Exporter;
pub use import::import;

/// The short name of the format.
pub const NAME: &str = "gecko";
