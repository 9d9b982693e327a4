//! Recordings of runtimes, read back.

#![allow(clippy::unwrap_used, reason = "tests fail by panics, in helper functions too")]

#[cfg(feature = "allocations")]
mod allocations;
#[cfg(all(target_os = "linux", feature = "cpu-samples"))]
mod cpu_samples;
#[cfg(all(tokio_unstable, feature = "taskdump"))]
mod dumps;
mod faults;
mod guide;
#[cfg(target_os = "linux")]
mod outside;
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
