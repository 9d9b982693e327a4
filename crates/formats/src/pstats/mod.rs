//! Statistics of functions, as in `python -m profiling.sampling replay`: how often each line of each function was executing,
//! how often it was on the stack, and who called it.
//!
//! [`Exporter`] writes them as a file for Python's `pstats` module, or as the table that `replay` prints.

mod export;
mod facts;
mod stats;
mod text;
mod write;

pub use export::Exporter;
pub(crate) use facts::{FACTS, TEXT_FACTS};
pub use text::{Sort, TextOptions};

use crate::Weighed;
use crate::registry::{Codec, EventSupport, Exporting};

/// The short name of the file's format.
pub const NAME: &str = "pstats";

/// The short name of the text.
pub const TEXT_NAME: &str = "pstats-text";

/// Reads and writes the format.
pub(crate) const CODEC: Codec = Codec {
    import: None,
    export: Some(Exporting {
        events: EventSupport::Lost,
        start: |to, options| Box::new(Weighed::new(Exporter::new(to.output), options.value.as_deref())),
    }),
};

/// Writes the text.
pub(crate) const TEXT_CODEC: Codec = Codec {
    import: None,
    export: Some(Exporting {
        events: EventSupport::Lost,
        start: |to, options| {
            Box::new(Weighed::new(Exporter::text(to.output, options.get()), options.value.as_deref()))
        },
    }),
};
