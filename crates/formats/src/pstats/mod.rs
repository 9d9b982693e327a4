//! Statistics of functions, as in `python -m profiling.sampling replay`: how often each line of each function was executing,
//! how often it was on the stack, and who called it.
//!
//! * [`Exporter`] writes a file for Python's `pstats` module;
//! * [`TextExporter`] writes the table that `replay` prints.

mod distinct;
mod export;
mod stats;
mod text;
mod write;

pub use export::{Exporter, TextExporter};
pub use text::{Sort, TextOptions};

/// The short name of the file's format.
pub const NAME: &str = "pstats";

/// The short name of the text.
pub const TEXT_NAME: &str = "pstats-text";
