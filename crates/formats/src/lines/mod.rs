//! Lines of text formats, read and written.

pub(crate) mod folded;
pub(crate) mod import;
#[cfg(feature = "json")]
pub(crate) mod json;
pub(crate) mod runs;
pub(crate) mod text;
