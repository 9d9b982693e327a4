//! Samples as rows of a Parquet file, for anybody's DuckDB.
//!
//! Written, not read. A row is a sample; its stack is a list of frames. `docs/formats/parquet.md` has the schema.

mod export;
mod facts;
mod write;

pub use export::Exporter;
pub(crate) use facts::FACTS;

use crate::registry::{Codec, EventSupport, Exporting};

/// The short name of the format.
pub const NAME: &str = "parquet";

/// Writes the format.
pub(crate) const CODEC: Codec = Codec {
    import: None,
    export: Some(Exporting { events: EventSupport::Lost, start: |to, _| Box::new(Exporter::new(to.output)) }),
};
