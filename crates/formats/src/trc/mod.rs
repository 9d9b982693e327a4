//! `trc`, the event trace of dial9: the crate [`borehole_trc`].

mod facts;

pub use borehole_trc::*;
pub(crate) use facts::FACTS;

use crate::registry::{Codec, EventSupport, Exporting, Import};

/// Reads and writes the format.
pub(crate) const CODEC: Codec = Codec {
    import: Some(Import::Enveloped(|input, options, spool, tables, sink| {
        import(input, options, spool()?, tables, sink)
    })),
    export: Some(Exporting {
        events: EventSupport::Kept,
        start: |to, options| Box::new(Exporter::new(to.output, options.get::<ExportOptions>())),
    }),
};
