//! Real Python programs, and recordings of their memory.

#![allow(clippy::unwrap_used, reason = "tests fail by panics, in helper functions too")]

mod images;
mod programs;
mod stacks;
mod tasks;
mod variables;
