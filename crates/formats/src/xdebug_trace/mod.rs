//! Function traces of Xdebug: the calls of a PHP request, one a line.
//!
//! The format for people (`xdebug.trace_format=0`) has a line for each call, which is as deep as it is indented; the one for
//! programs (`1`) has a line for each call and one for its end. `docs/formats/xdebug-trace.md` has the details.

mod facts;
mod import;
mod read;

pub(crate) use facts::FACTS;
pub use import::import;

use crate::registry::{Codec, Import};

/// The short name of the format.
pub const NAME: &str = "xdebug-trace";

/// Reads the format.
pub(crate) const CODEC: Codec = Codec {
    import: Some(Import::Plain(|input, options, tables, sink| import(input, options, tables, sink))),
    export: None,
};
