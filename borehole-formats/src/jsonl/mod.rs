//! The `jsonl` format: one JSON object a line, as `borehole dump` prints them.
//!
//! It holds everything that the model knows, so that what is written here and read back is the same
//! profile. `docs/dump.md` describes every line for users; a test holds that page against this code.
//!
//! * [`Exporter`] writes the lines, [`import`] reads them.
//! * [`LineWriter`] is the JSON writer underneath: small, without allocation per line, and of use to
//!   whatever else prints lines.

mod event;
mod export;
mod import;
mod layout;
mod read;
mod value;
mod write;

pub use export::{ExportOptions, Exporter};
pub use import::import;
pub use layout::SCHEMA_VERSION;
pub use write::LineWriter;

/// The short name of the format.
pub const NAME: &str = "jsonl";
