//! `trc`, the self-describing event trace of dial9: what a Tokio program did, or whatever a program records.
//!
//! * [`Reader`] pulls events and frames out of raw or gzipped input, strictly or, with
//!   [`ReadOptions::lenient`](crate::ReadOptions::lenient), past any damage. It streams: it holds one frame and
//!   what the current batch defines.
//! * [`Schema`] is a type of events, [`Writer`] writes events as batches, checked against their schema.
//! * [`import`] and [`Exporter`] connect the format with the model.

mod batch;
mod encode;
mod event;
mod export;
mod export_samples;
mod fault;
mod frame;
mod import;
mod intern;
mod keys;
pub mod layout;
mod pool;
mod read;
mod recover;
mod samples;
mod schema;
mod value;
mod write;

pub use encode::EventWriter;
pub use event::Event;
pub use export::{ExportOptions, Exporter};
pub use import::import;
pub use layout::{FieldKind, FieldType};
pub use read::{Content, Frame, Reader, StackEntries, StringEntries};
pub use schema::{Annotation, Definition, Field, InvalidSchema, Schema};
pub use value::{Elements, Pairs, Stack, TextPairs, Value};
pub use write::{Dialect, Invalid, StackRef, StringRef, ValueDef, WriteOptions, Writer};

/// The short name of the format.
pub const NAME: &str = "trc";
