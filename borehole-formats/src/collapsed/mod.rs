//! Collapsed stacks, as `python -m profiling.sampling replay --collapsed` writes them: a line a thread and
//! stack, `tid:7;app.py:main:3;db.py:query:41 120`, the most frequent first.
//!
//! [`Exporter`] writes them. Reading them is reading folded stacks.

mod counts;
mod export;
mod lines;
mod order;
mod renamed;

pub use export::Exporter;

/// The short name of the format.
pub const NAME: &str = "collapsed";
