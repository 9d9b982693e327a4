//! The processed profiles of Firefox Profiler. They are written like CPython's `replay --gecko` does: a lane per
//! thread, with its samples, and with the intervals in which it had the GIL, was on a CPU, waited, or had an exception.
//! Profiles of any writer and version can be read, and those that Firefox itself writes (`docs/formats/gecko.md`).
//!
//! Errors of `replay` are not copied: `docs/formats/tachyon.md` lists the differences.

mod document;
mod export;
mod facts;
mod import;
mod lane;
mod location;
mod read;
mod rows;
mod tables;
mod texts;
mod unprocessed;

pub use export::Exporter;
pub(crate) use facts::FACTS;
pub use import::import;

use crate::registry::{Codec, EventSupport, Exporting, Import};

/// The short name of the format.
pub const NAME: &str = "gecko";

/// Reads and writes the format.
pub(crate) const CODEC: Codec = Codec {
    import: Some(Import::Plain(|input, options, tables, sink| import(input, options, tables, sink))),
    export: Some(Exporting {
        events: EventSupport::Lost,
        start: |to, _| Box::new(Exporter::new(to.output, to.spool)),
    }),
};
