//! The formats against files of the programs that they come from.

#![allow(missing_docs, reason = "tests are read in their source")]
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails, in what it calls as well")]

mod callgrind;
mod flamegraph;
mod flat;
mod folded;
mod phpspy;
