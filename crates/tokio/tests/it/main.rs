//! Recordings of runtimes, read back.

#![allow(clippy::unwrap_used, reason = "tests fail by panics, in helper functions too")]

#[cfg(feature = "allocations")]
mod allocations;
#[cfg(all(tokio_unstable, feature = "taskdump"))]
mod dumps;
mod faults;
mod guide;
mod program;
mod reference;
#[cfg(feature = "axum")]
mod requests;
mod runtimes;
mod scratch;
#[cfg(feature = "tracing")]
mod spans;
mod tasks;
mod trace;
#[cfg(feature = "upload")]
mod uploads;
