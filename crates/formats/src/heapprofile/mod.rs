//! V8's sampling heap profiles (`.heapprofile`), which `node --heap-prof` and Chrome's DevTools write.
//!
//! A JSON object with a tree of functions, each called from the one around it, and the bytes that it allocated and that are still
//! in use. The tree is nested as deep as the calls were, so [`read`] walks it without recursion.
//! `docs/formats/heapprofile.md` has the details.

mod facts;
mod import;
mod read;

pub(crate) use facts::FACTS;
pub use import::import;

use crate::registry::{Codec, Import};

/// The short name of the format.
pub const NAME: &str = "heapprofile";

/// Reads the format.
pub(crate) const CODEC: Codec = Codec {
    import: Some(Import::Plain(|input, options, tables, sink| import(input, options, tables, sink))),
    export: None,
};
