//! Real PHP programs, and recordings of their memory.

#![allow(clippy::unwrap_used, reason = "tests fail by panics, in helper functions too")]

mod failed;
mod images;
mod pool;
mod programs;
mod running;
mod stacks;
