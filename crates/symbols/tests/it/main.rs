//! Symbols of real programs, compared with what other programs find, and of damaged ones.

#![allow(clippy::unwrap_used, reason = "tests fail by panics, in helper functions too")]

mod debug_files;
mod hostile;
mod lines;
mod live;
mod program;
