//! `tachyon`, the binary profiles of CPython 3.15: samples of Python call stacks.
//!
//! * [`Reader`] pulls samples out of a whole file, strictly or, with
//!   [`ReadOptions::lenient`](crate::ReadOptions::lenient), past any damage.
//! * [`Writer`] writes the same bytes as CPython for the same samples. With a journal beside it, its flushed samples
//!   can be recovered if it is killed.
//! * [`import`] and [`Exporter`] connect the format with the model.

mod body;
mod borrow;
mod export;
mod import;
mod intern;
mod journal;
pub mod layout;
mod metadata;
mod number;
mod opcodes;
mod open;
mod read;
mod record;
mod recover;
mod region;
mod statistics;
mod tables;
mod threads;
mod write;

pub use export::{ExportOptions, Exporter};
pub use import::{Document, import, import_document, read_document};
pub use journal::JOURNAL_MAGIC;
pub use layout::{ByteOrder, Header, HeaderLayout};
pub use opcodes::Opcodes;
pub use read::{Reader, RecordCounts, Sample};
pub use statistics::Statistics;
pub use tables::{Frame, Tables};
pub use threads::LOST_FRAME;
pub use write::{Compression, FrameDef, FrameId, SampleOrder, ThreadSlot, Writer, WriterOptions};

/// The short name of the format.
pub const NAME: &str = "tachyon";
