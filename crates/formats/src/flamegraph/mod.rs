//! Flame graphs as SVG in the style of Brendan Gregg's scripts, in one file that a browser shows.
//!
//! Drawing needs the whole graph: the folded stacks are in memory while it is drawn, the samples never are.

mod export;
mod facts;

pub use crate::lines::folded::NameStyle;
pub use export::{Direction, ExportOptions, Exporter};
pub(crate) use facts::FACTS;

use crate::Weighed;
use crate::registry::{Codec, EventSupport, Exporting};

/// The short name of the format.
pub const NAME: &str = "flamegraph";

/// Reads and writes the format.
pub(crate) const CODEC: Codec = Codec {
    import: None,
    export: Some(Exporting {
        events: EventSupport::Lost,
        start: |to, options| {
            Box::new(Weighed::new(Exporter::new(to.output, options.get()), options.value.as_deref()))
        },
    }),
};
