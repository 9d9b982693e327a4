//! Real PHP programs, and recordings of them.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails, in what it calls as well")]

mod failed;
mod images;
mod pool;
mod programs;
mod running;
mod stacks;
