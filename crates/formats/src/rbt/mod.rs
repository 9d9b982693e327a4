//! `rbt`, the binary trace format of reli: samples of PHP call stacks.
//!
//! * [`Reader`] pulls segments, metadata and samples out of raw or compressed input, strictly or, with
//!   [`ReadOptions::lenient`](crate::ReadOptions::lenient), past any damage.
//! * [`EventReader`] pulls the undecoded events, for tools that dump files.
//! * [`Writer`] writes one segment after another to a stream, [`SegmentedWriter`] rotates by time.
//! * [`import`] and [`Exporter`] connect the format with the model.
//!
//! # Examples
//!
//! ```
//! use borehole_formats::rbt::{FrameDef, Header, Reader, Record, Writer};
//!
//! let mut writer = Writer::new(Vec::new(), Header { has_timestamps: false, period_us: 10_000 })?;
//! let frames = [FrameDef::php("App\\Db::query", "/app/Db.php", 42), FrameDef::php("<main>", "/app/index.php", 3)];
//! for _ in 0..5 {
//!     writer.write_trace(&frames)?;
//! }
//! let bytes = writer.finish()?;
//!
//! let mut reader = Reader::new(bytes.as_slice());
//! while let Some(record) = reader.next_record()? {
//!     if let Record::Sample(sample) = record {
//!         assert_eq!(sample.count, 5);
//!         assert_eq!(sample.definitions.frames_leaf_first(sample.stack).count(), 2);
//!     }
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod annotations;
mod assembler;
mod clock;
mod column;
mod definitions;
mod event;
mod events;
mod export;
mod facts;
mod flow;
mod frame_def;
mod ids;
mod import;
mod indices;
mod intern;
mod last_trace;
pub mod layout;
mod paths;
mod plausibility;
mod read;
mod recover;
mod search;
mod segment_output;
mod segment_process;
mod segmented;
mod trie;
mod write;

pub use crate::frames::function_name::FunctionName;
pub use assembler::{Record, SegmentStart, StoredSample};
pub use definitions::{DefinedFrame, Definitions};
pub use event::{DecodedEvent, FrameFields, RawEvent, Varints};
pub use events::{EventReader, RawRecord};
pub use export::{ExportOptions, Exporter, Timestamps};
pub(crate) use facts::FACTS;
pub use frame_def::FrameDef;
pub use ids::{FrameId, StackId};
pub use import::{import, import_reader};
pub use indices::{FrameIndex, StackIndex, StringIndex};
pub use layout::{Header, NAME};
pub use read::Reader;
pub use segment_output::segment_output;
pub use segmented::SegmentedWriter;
pub use write::{SampleDef, Writer};

use crate::registry::{Codec, EventSupport, Exporting, Import};

/// Reads and writes the format.
pub(crate) const CODEC: Codec = Codec {
    import: Some(Import::Enveloped(|input, options, _, tables, sink| import(input, options, tables, sink))),
    export: Some(Exporting {
        events: EventSupport::Lost,
        start: |to, options| Box::new(Exporter::new(to.output, ExportOptions::of(options))),
    }),
};
