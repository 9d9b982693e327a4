//! `rbt`, the binary trace format of reli: samples of PHP call stacks.
//!
//! * [`Reader`] pulls segments, metadata and samples out of raw or compressed input, strictly or, with
//!   [`ReadOptions::lenient`](crate::ReadOptions::lenient), past any damage.
//! * [`Events`] pulls the undecoded events, for tools that show a file as it is.
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
mod column;
mod definitions;
mod event;
mod events;
mod export;
mod flow;
mod frame_content;
mod ids;
mod import;
mod intern;
mod last_trace;
pub mod layout;
mod paths;
mod plausibility;
mod read;
mod recover;
mod segment_output;
mod segment_process;
mod segmented;
mod trie;
mod write;

pub use crate::function_name::FunctionName;
pub use definitions::{Definitions, Frame, FrameRef, StackRef, StringRef};
pub use event::{Event, FrameFields, RawEvent, Varints};
pub use events::{Events, RawRecord};
pub use export::{ExportOptions, Exporter, Timestamps};
pub use ids::{FrameId, StackId};
pub use import::{import, import_reader};
pub use layout::Header;
pub use read::{Reader, Record, Sample, SegmentStart};
pub use segment_output::{Compression, SegmentOutput};
pub use segmented::SegmentedWriter;
pub use write::{FrameDef, SampleDef, Writer};

/// The short name of the format.
pub const NAME: &str = "rbt";
