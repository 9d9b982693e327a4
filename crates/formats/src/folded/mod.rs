//! Folded stacks: `main /index.php:5;query /db.php:7 12`, one line per stack, its count last.
//!
//! This is the common language of flame graphs. [`import`] reads the output of the many programs that write it, and
//! separates function, file and line if a frame has the form `FUNCTION FILE:LINE`; [`Exporter`] adds samples up by
//! stack and writes them in order of first appearance.
//!
//! The output of CPython's profiler, py-spy and Austin is interpreted: locations of frames, threads, processes, and
//! Austin's numbers as values.
//!
//! The exporter writes only stacks and counts: times, processes, threads and labels are lost, and counted.

mod convention;
mod export;
mod import;
mod read;

pub use crate::folded_lines::Names;
pub use export::{ExportOptions, Exporter};
pub use import::import;

/// The short name of the format.
pub const NAME: &str = "folded";
