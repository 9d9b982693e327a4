//! Collapsed stacks, as `python -m profiling.sampling replay --collapsed` writes them: one line per thread and stack,
//! `tid:7;app.py:main:3;db.py:query:41 120`, the most frequent first.
//!
//! [`Exporter`] writes them. They are read as folded stacks.

mod counts;
mod export;
mod lines;
mod order;
mod renamed;

pub use export::Exporter;

/// The short name of the format.
pub const NAME: &str = "collapsed";
