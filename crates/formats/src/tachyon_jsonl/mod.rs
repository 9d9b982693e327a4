//! Sums of frames as lines of JSON, as `python -m profiling.sampling replay --jsonl` writes them: names and frames in chunks,
//! and the self and total samples of each frame.
//!
//! This is not the lossless `jsonl` of `borehole dump`: it has neither stacks nor times.

mod export;
mod facts;
mod import;
mod read;

pub use export::Exporter;
pub(crate) use facts::FACTS;
pub use import::import;

use crate::registry::{Codec, EventSupport, Exporting, Import};

/// The short name of the format.
pub const NAME: &str = "tachyon-jsonl";

/// Reads and writes the format.
pub(crate) const CODEC: Codec = Codec {
    import: Some(Import::Plain(|input, options, tables, sink| import(input, options, tables, sink))),
    export: Some(Exporting { events: EventSupport::Lost, start: |to, _| Box::new(Exporter::new(to.output)) }),
};
