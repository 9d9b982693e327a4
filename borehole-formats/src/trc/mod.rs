//! `trc`, the self-describing event trace of dial9: what a Tokio program did, or whatever a program records.
//!
//! * [`Reader`] pulls events and frames out of raw or gzipped input, strictly or, with
//!   [`ReadOptions::lenient`](crate::ReadOptions::lenient), past any damage. It streams: it holds one frame and
//!   what the current batch defines.
//! * [`Schema`] is a type of events.

mod batch;
mod event;
mod fault;
mod frame;
pub mod layout;
mod pool;
mod read;
mod recover;
mod schema;
mod value;

pub use event::Event;
pub use layout::{FieldKind, FieldType};
pub use read::{Frame, Reader, StackEntries, StringEntries};
pub use schema::{Annotation, Definition, Field, InvalidSchema, Schema};
pub use value::{Elements, Pairs, Stack, TextPairs, Value};

/// The short name of the format.
pub const NAME: &str = "trc";
