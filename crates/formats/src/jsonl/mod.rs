//! The `jsonl` format: one JSON object per line, as `borehole dump` prints them.
//!
//! It holds all data of the model, so that writing and reading restores the profile. `docs/dump.md` describes every
//! line for users; a test compares that page with this code.
//!
//! * [`Exporter`] writes the lines, [`import`] reads them.
//! * [`LineWriter`] is the JSON writer underneath: small, without allocation per line, and useful for any other output
//!   of lines.

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
