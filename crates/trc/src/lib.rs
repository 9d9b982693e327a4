//! Internal to [Borehole](https://docs.rs/borehole), whose own crates alone depend on it. Its interface may change at any time.
//!
//! `trc`, the self-describing event trace of dial9: the activity of a Tokio program, or any other events that a program
//! records.
//!
//! * [`Reader`] pulls events and frames out of raw or compressed input, strictly or, with
//!   [`ReadOptions::lenient`](crate::ReadOptions::lenient), past any damage. It streams: it holds one frame and the
//!   definitions of the current batch.
//! * [`Schema`] is a type of events, [`Writer`] writes events as batches, checked against their schema.
//! * [`TraceEvent`] makes a struct a type of events: [`Writer::write`] writes its values, [`TypedEvents`] reads them
//!   back, borrowed. The feature `derive` derives it.
//! * [`import`] and [`Exporter`] connect the format with the model.

#![forbid(unsafe_code)]

mod batch;
mod buffer;
mod building;
mod chain;
mod encode;
mod event;
mod export;
mod fault;
mod frame;
mod import;
mod intern;
mod invalid;
mod keys;
pub mod layout;
mod per_type;
mod pool;
mod pools;
mod put;
mod raw;
mod read;
mod recover;
mod samples;
mod schema;
mod search;
mod take;
mod typed;
mod value;
mod write;

pub use encode::EventWriter;
pub use event::Event;
pub use export::{ExportOptions, Exporter};
pub use import::import;
pub use invalid::Invalid;
pub use layout::{Dialect, FieldKind, FieldType};
pub use put::{FieldWriter, PutField, PutPooled};
pub use read::{Content, Frame, Reader, StackEntries, StringEntries};
pub use schema::{Annotation, Definition, Field, Schema};
pub use take::{EventPlan, Mismatch, ReadEvent, ReadType, TakeField, TypedEvents};
pub use typed::{EventType, TraceEvent, TypedField, schema_of};
pub use value::{Elements, Pairs, Stack, StackFrames, TextPairs, Value};
pub use write::{StackRef, StringRef, ValueDef, WriteOptions, Writer};

#[cfg(feature = "derive")]
pub use borehole_derive::{ReadEvent, TraceEvent};

/// The names of dial9's events, fields and labels.
pub use borehole_model::dial9;

// The types in this crate's signatures that other crates own.
pub use borehole_model::{
    Export, Limits, Losses, OnDamage, ReadOptions, Recovery, SampleKind, Warning, WarningKind,
};
pub use borehole_text::{Error, ErrorKind, Position, ReadError};

/// The short name of the format.
pub const NAME: &str = "trc";
