//! `tachyon`, the binary profiles of CPython 3.15: samples of Python call stacks.
//!
//! * [`Reader`] pulls samples out of a whole file, strictly or, with
//!   [`ReadOptions::lenient`](crate::ReadOptions::lenient), past any damage.
//! * [`Writer`] writes the same bytes as CPython for the same samples. With a journal beside it, its flushed samples
//!   can be recovered if it is killed.
//! * [`import`] and [`Exporter`] connect the format with the model.

mod body;
mod export;
mod facts;
mod import;
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

pub use crate::registry::Document;
pub use export::{ExportOptions, Exporter};
pub(crate) use facts::FACTS;
pub use import::{import, import_document, read_document};
pub use journal::JOURNAL_MAGIC;
pub use layout::{ByteOrder, FileHeader, HeaderLayout};
pub use opcodes::Opcodes;
pub use read::{Reader, RecordKindCounts, ThreadSample};
pub use statistics::Statistics;
pub use tables::{FileFrame, FileTables};
pub use threads::LOST_FRAME;
pub use write::{FrameSlot, PythonFrame, SampleOrder, ThreadSlot, Writer, WriterOptions};

use crate::registry::{Codec, EventSupport, Exporting, Import};

/// The short name of the format.
pub const NAME: &str = "tachyon";

/// Reads and writes the format.
pub(crate) const CODEC: Codec = Codec {
    import: Some(Import::Document {
        read: |input, options| read_document(input, options),
        import: import_document,
    }),
    export: Some(Exporting {
        events: EventSupport::Lost,
        start: |to, options| Box::new(Exporter::new(to.output, ExportOptions::of(options), to.spool)),
    }),
};
