//! V8's CPU profiles (`.cpuprofile`), which `node --cpu-prof` and Chrome's DevTools write.
//!
//! A JSON object: a tree of nodes, each a function called from its parent, and for each sample a node and the microseconds since
//! the sample before. `docs/formats/cpuprofile.md` has the details.

mod export;
mod facts;
mod import;

pub use export::Exporter;
pub(crate) use facts::FACTS;
pub use import::import;

use crate::registry::{Codec, EventSupport, Exporting, Import};

/// The short name of the format.
pub const NAME: &str = "cpuprofile";

/// Reads and writes the format.
pub(crate) const CODEC: Codec = Codec {
    import: Some(Import::Plain(|input, options, tables, sink| import(input, options, tables, sink))),
    export: Some(Exporting {
        events: EventSupport::Lost,
        start: |to, options| Box::new(Exporter::new(to.output, options.value.as_deref(), to.spool)),
    }),
};
