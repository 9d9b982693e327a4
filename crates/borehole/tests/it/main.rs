//! The facade, used as by a Rust program.

#![allow(clippy::unwrap_used, reason = "tests fail by panics, in helper functions too")]

mod accepted;
mod budget;
mod conversions;
mod errors;
mod in_memory;
mod inputs;
mod names;
mod outputs;
mod own_format;
mod processes;
mod records;
mod redacting;
mod survives;
mod threads;
mod zstd;
