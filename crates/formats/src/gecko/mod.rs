//! The processed profiles of Firefox Profiler. They are written like CPython's `replay --gecko` does: a lane per
//! thread, with its samples, and with the intervals in which it had the GIL, was on a CPU, waited, or had an exception.
//! Profiles of any writer and version can be read (`docs/formats/gecko.md`).
//!
//! Errors of `replay` are not copied: `docs/formats/tachyon.md` lists the differences.

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
