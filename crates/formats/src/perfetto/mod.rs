//! Perfetto's protobuf traces: timelines for ui.perfetto.dev and `trace_processor`.
//!
//! Written, not read.

mod export;
mod layout;
mod write;

pub use export::Exporter;

/// The short name of the format.
pub const NAME: &str = "perfetto";
