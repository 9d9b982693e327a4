//! Flame graphs as SVG in the style of Brendan Gregg's scripts, in one file that a browser shows.
//!
//! Drawing needs the whole graph: the folded stacks are in memory while it is drawn, the samples never are.

mod export;

pub use crate::folded_lines::Names;
pub use export::{Direction, ExportOptions, Exporter};

/// The short name of the format.
pub const NAME: &str = "flamegraph";
