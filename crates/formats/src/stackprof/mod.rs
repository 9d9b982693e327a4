//! Profiles of Ruby's stackprof, as JSON.
//!
//! An object with a table of frames by their addresses, and with `raw: true` the stacks of all samples.
//! `docs/formats/stackprof.md` has the details.

mod facts;
mod import;
mod read;

pub(crate) use facts::FACTS;
pub use import::import;

use crate::registry::{Codec, Import};

/// The short name of the format.
pub const NAME: &str = "stackprof";

/// Reads the format.
pub(crate) const CODEC: Codec = Codec {
    import: Some(Import::Plain(|input, options, tables, sink| import(input, options, tables, sink))),
    export: None,
};
