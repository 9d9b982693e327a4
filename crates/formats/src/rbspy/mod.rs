//! Raw recordings of rbspy: a line of JSON for each stack of a Ruby thread.
//!
//! The first line is the version, the second one a header. `docs/formats/rbspy.md` has the details.

mod facts;
mod import;
mod read;

pub(crate) use facts::FACTS;
pub use import::import;

use crate::registry::{Codec, Import};

/// The short name of the format.
pub const NAME: &str = "rbspy";

/// Reads the format.
pub(crate) const CODEC: Codec = Codec {
    import: Some(Import::Plain(|input, options, tables, sink| import(input, options, tables, sink))),
    export: None,
};
