//! The file format of the viewer speedscope: JSON.
//!
//! Frames are stored once; each process and thread is a profile of its own, a list of stacks with weights. Data of the
//! model that the format cannot hold (the process of a profile, the number of samples of an entry) is written in a
//! member `borehole` of the profile, which the viewer ignores.
//!
//! Mapping to the model: `docs/formats/speedscope.md`.

mod document;
mod export;
mod facts;
mod import;
mod layout;
mod names;
mod read;
mod track;

pub use export::{ExportOptions, Exporter};
pub(crate) use facts::FACTS;
pub use import::import;
pub use names::Utf8Errors;

use crate::registry::{Codec, EventSupport, Exporting, Import};

/// The short name of the format.
pub const NAME: &str = "speedscope";

/// Reads and writes the format.
pub(crate) const CODEC: Codec = Codec {
    import: Some(Import::Plain(|input, options, tables, sink| import(input, options, tables, sink))),
    export: Some(Exporting {
        events: EventSupport::Lost,
        start: |to, options| {
            Box::new(Exporter::new(
                to.output,
                ExportOptions { value: options.value.clone(), ..options.get() },
                to.spool,
            ))
        },
    }),
};
