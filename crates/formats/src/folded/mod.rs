//! Folded stacks: `main /index.php:5;query /db.php:7 12`, one line per stack, its count last.
//!
//! This is the common language of flame graphs. [`import`] reads the output of the many programs that write it, and
//! separates function, file and line if a frame has the form `FUNCTION FILE:LINE`; [`Exporter`] adds samples up by
//! stack and writes them in order of first appearance.
//!
//! The output of CPython's profiler, py-spy and Austin is interpreted: locations of frames, threads, processes, and
//! Austin's numbers as values.
//!
//! The exporter writes only stacks and counts: times, processes, threads and labels are lost, and counted.

mod convention;
mod export;
mod facts;
mod import;
mod read;

pub use crate::lines::folded::NameStyle;
pub use export::{ExportOptions, Exporter};
pub(crate) use facts::FACTS;
pub use import::import;

use crate::Weighed;
use crate::registry::{Codec, EventSupport, Exporting, Import};

/// The short name of the format.
pub const NAME: &str = "folded";

/// Reads and writes the format.
pub(crate) const CODEC: Codec = Codec {
    import: Some(Import::Plain(|input, options, tables, sink| import(input, options, tables, sink))),
    export: Some(Exporting {
        events: EventSupport::Lost,
        start: |to, options| {
            Box::new(Weighed::new(Exporter::new(to.output, options.get()), options.value.as_deref()))
        },
    }),
};
