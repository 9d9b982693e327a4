//! The processed profiles of Firefox Profiler, as CPython's `replay --gecko` writes them: a lane a thread, with
//! its samples, and with the stretches in which it had the GIL, was on a CPU, waited, or had an exception.
//!
//! Where `replay` is wrong, this is not: `docs/formats/tachyon.md` lists where the two differ.

mod document;
mod export;
mod lane;
mod state;
mod tables;
mod write;

pub use export::Exporter;

/// The short name of the format.
pub const NAME: &str = "gecko";
