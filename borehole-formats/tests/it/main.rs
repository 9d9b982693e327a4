//! The formats against files of the programs that they come from.

#![allow(missing_docs, reason = "tests are read in their source")]

mod callgrind;
mod flamegraph;
mod flat;
mod folded;
mod phpspy;
