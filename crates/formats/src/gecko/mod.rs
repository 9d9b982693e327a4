//! The processed profiles of Firefox Profiler. They are written like CPython's `replay --gecko` does: a lane per
//! thread, with its samples, and with the intervals in which it had the GIL, was on a CPU, waited, or had an exception.
//! Profiles of any writer and version can be read, and those that Firefox itself writes (`docs/formats/gecko.md`).
//!
//! Errors of `replay` are not copied: `docs/formats/tachyon.md` lists the differences.

mod counters;
mod document;
mod export;
mod facts;
mod import;
mod lane;
mod location;
mod marker_table;
mod markers;
mod read;
mod rows;
mod symbols_file;
mod tables;
mod texts;
mod unprocessed;

pub use export::Exporter;
pub(crate) use facts::FACTS;
pub use import::{import, import_with_symbols};

use crate::registry::{Codec, EventSupport, Exporting, Import};

/// The short name of the format.
pub const NAME: &str = "gecko";

/// Reads and writes the format.
pub(crate) const CODEC: Codec = Codec {
    import: Some(Import::Accompanied {
        companions: symbols_file::file_names,
        import: |input, companion, options, tables, sink| {
            import_with_symbols(input, companion, options, tables, sink)
        },
    }),
    export: Some(Exporting {
        events: EventSupport::Lost,
        start: |to, _| Box::new(Exporter::new(to.output, to.spool)),
    }),
};
