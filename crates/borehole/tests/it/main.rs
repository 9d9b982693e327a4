//! The facade, used as by a Rust program.

#![allow(clippy::unwrap_used, reason = "tests fail by panics, in helper functions too")]

mod conversions;
mod errors;
mod inputs;
mod outputs;
mod processes;
mod records;
mod redacting;
mod survives;
mod zstd;
