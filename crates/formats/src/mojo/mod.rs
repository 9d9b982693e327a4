//! MOJO, the binary profiles of Austin.
//!
//! A stream of events: metadata; the process and thread of a sample; strings and frames, each defined once for its process;
//! references to frames from the root to the leaf; and what the sample measured. A sample ends where the next one begins.
//! `docs/formats/mojo.md` has the details.

mod definitions;
mod facts;
mod import;
mod layout;
mod read;

pub(crate) use facts::FACTS;
pub use import::import;

use crate::registry::{Codec, Import};

/// The short name of the format.
pub const NAME: &str = "mojo";

/// Reads the format.
pub(crate) const CODEC: Codec = Codec {
    import: Some(Import::Plain(|input, options, tables, sink| import(input, options, tables, sink))),
    export: None,
};
