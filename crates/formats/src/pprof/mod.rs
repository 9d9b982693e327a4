//! pprof's `profile.proto`, the format that `go tool pprof` and most profile stores read.
//!
//! One protobuf message holds the whole profile. Samples are aggregated; there is no time axis. The wire is read and
//! written by hand: the message has eight types and no extensions, and errors of an import can then state the byte
//! offset.
//!
//! Mapping to the model: `docs/formats/pprof.md`.

mod columns;
mod concatenated;
mod encode;
mod export;
mod facts;
mod fill;
mod import;
mod layout;
mod prune;
mod read;
mod resolve;
mod rows;
mod symbols;
mod write;

pub use export::Exporter;
pub(crate) use facts::FACTS;
pub use fill::fill_symbols;
pub use import::import;

use crate::registry::{Codec, EventSupport, Exporting, Import};

/// The short name of the format.
pub const NAME: &str = "pprof";

/// Reads and writes the format.
pub(crate) const CODEC: Codec = Codec {
    import: Some(Import::Plain(|input, options, tables, sink| import(input, options, tables, sink))),
    export: Some(Exporting {
        events: EventSupport::Lost,
        start: |to, _| Box::new(Exporter::compressed(to.output)),
    }),
};
