//! The facade as a Rust program meets it.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails, in what it calls as well")]

mod conversions;
mod errors;
mod inputs;
mod outputs;
mod processes;
mod records;
mod scrubbing;
mod survives;
mod zstd;
