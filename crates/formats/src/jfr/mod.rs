//! The recordings of Java Flight Recorder, which async-profiler writes, too.
//!
//! A file is chunks, each for itself: a header, events, a description of all types of values (`metadata`), and pools of constants
//! (`pools`) such as stacks, methods and threads, which events refer to by numbers. What an event means is in `kinds`.
//! `docs/formats/jfr.md` has the details.

mod chunks;
mod facts;
mod import;
mod kinds;
mod layout;
mod metadata;
mod pools;
mod resolve;

mod values;

pub(crate) use facts::FACTS;
pub use import::{import, import_document};

use crate::documents::whole::read_whole;
use crate::registry::{Codec, Import};

/// The short name of the format.
pub const NAME: &str = "jfr";

/// Reads the format.
pub(crate) const CODEC: Codec = Codec {
    import: Some(Import::Document {
        read: |input, options| read_whole(NAME, std::io::BufReader::new(input), &options.limits),
        import: import_document,
    }),
    export: None,
};
