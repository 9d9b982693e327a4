//! Recordings of runtimes, read back.

#![allow(clippy::unwrap_used, reason = "tests fail by panics, in helper functions too")]

mod program;
#[cfg(feature = "axum")]
mod requests;
mod runtimes;
#[cfg(feature = "tracing")]
mod spans;
mod tasks;
mod trace;
