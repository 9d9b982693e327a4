//! Collapsed stacks, as `python -m profiling.sampling replay --collapsed` writes them: one line per thread and stack,
//! `tid:7;app.py:main:3;db.py:query:41 120`, the most frequent first.
//!
//! [`Exporter`] writes them. They are read as folded stacks.

mod export;
mod facts;
mod lines;
mod order;
mod parts;

pub use export::Exporter;
pub(crate) use facts::FACTS;

use crate::Weighed;
use crate::registry::{Codec, EventSupport, Exporting};

/// The short name of the format.
pub const NAME: &str = "collapsed";

/// Reads and writes the format.
pub(crate) const CODEC: Codec = Codec {
    import: None,
    export: Some(Exporting {
        events: EventSupport::Lost,
        start: |to, options| Box::new(Weighed::new(Exporter::new(to.output), options.value.as_deref())),
    }),
};
