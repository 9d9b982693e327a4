//! Statistics of functions for Python's `pstats`: how often each was called and by whom, and how long it took. [`import`] reads
//! those of `cProfile`, `profile` and the sampling profiler.
//!
//! In those of `python -m profiling.sampling replay`, calls are samples: how often each line of each function was executing, how
//! often it was on the stack, and who called it. [`Exporter`] writes them as a file for Python's `pstats` module, or as the table that `replay` prints.

mod export;
mod facts;
mod import;
mod marshal;
mod read;
mod stats;
mod text;
mod write;

pub use export::Exporter;
pub(crate) use facts::{FACTS, TEXT_FACTS};
pub use import::import;
pub use text::{Sort, TextOptions};

use crate::Weighed;
use crate::registry::{Codec, EventSupport, Exporting, Import};

/// The short name of the file's format.
pub const NAME: &str = "pstats";

/// The short name of the text.
pub const TEXT_NAME: &str = "pstats-text";

/// The key that marks counts of samples, not of calls.
///
/// Source: CPython 3.15.2, `pstats.SampledStats`.
const SAMPLED: &str = "__sampled__";

/// Reads and writes the format.
pub(crate) const CODEC: Codec = Codec {
    import: Some(Import::Plain(|input, options, tables, sink| import(input, options, tables, sink))),
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
