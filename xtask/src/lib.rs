//! The code that the chores and the benchmarks share: other programs, and the peers that results are compared with.

#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "programs that talk to their user")]

pub mod command;
pub mod peers;
