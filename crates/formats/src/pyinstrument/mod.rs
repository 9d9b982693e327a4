//! Sessions of pyinstrument, as JSON: a stack with its time for each sample.
//!
//! `docs/formats/pyinstrument.md` has the details.

mod facts;
mod import;
mod read;

pub(crate) use facts::FACTS;
pub use import::import;

use crate::registry::{Codec, Import};

/// The short name of the format.
pub const NAME: &str = "pyinstrument";

/// Reads the format.
pub(crate) const CODEC: Codec = Codec {
    import: Some(Import::Plain(|input, options, tables, sink| import(input, options, tables, sink))),
    export: None,
};
