//! Chrome's trace events as JSON: timelines for all viewers of that format.
//!
//! Written, not read. Source: "Trace Event Format", the Chromium project.

mod export;
mod write;

pub use export::Exporter;

/// The short name of the format.
pub const NAME: &str = "chrome-trace";
