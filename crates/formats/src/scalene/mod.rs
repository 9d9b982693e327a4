//! Profiles of scalene for Python, as JSON: stacks of Python and native code with their samples, and stacks of allocations.
//!
//! `docs/formats/scalene.md` has the details.

mod facts;
mod import;
mod read;

pub(crate) use facts::FACTS;
pub use import::import;

use crate::registry::{Codec, Import};

/// The short name of the format.
pub const NAME: &str = "scalene";

/// Reads the format.
pub(crate) const CODEC: Codec = Codec {
    import: Some(Import::Plain(|input, options, tables, sink| import(input, options, tables, sink))),
    export: None,
};
