//! Unwinding real programs.

#![allow(clippy::unwrap_used, reason = "tests fail by panics, in helper functions too")]

mod backtraces;
mod images;
mod programs;
