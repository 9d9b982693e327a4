//! Folded stacks: `main /index.php:5;query /db.php:7 12`, one line a stack, its count last.
//!
//! The common language of flame graphs. [`import`] reads what the many programs write that speak it, and
//! tells function, file and line apart where a frame has the shape `FUNCTION FILE:LINE`; [`Exporter`] adds
//! samples up by stack and writes them in order of first appearance.
//!
//! What CPython's profiler, py-spy and Austin write is read for what they mean: places of frames, threads, processes, and
//! Austin's numbers as the values that they are.
//!
//! A folded file of ours holds stacks and counts and nothing else: times, processes, threads and labels are lost,
//! and counted.

mod convention;
mod export;
mod import;
mod read;

pub use crate::folded_lines::Names;
pub use export::{ExportOptions, Exporter};
pub use import::import;

/// The short name of the format.
pub const NAME: &str = "folded";
