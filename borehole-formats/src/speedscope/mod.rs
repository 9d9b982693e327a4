//! speedscope's file format: JSON for the viewer of the same name.
//!
//! Frames are stored once; each process and thread is a profile of its own, a list of stacks with weights.
//! What the model knows and the format has no place for (which process a profile is of, how many samples an
//! entry stands for) is written in a member `borehole` of the profile, which the viewer ignores.
//!
//! Mapping to the model: `docs/formats/speedscope.md`.

mod document;
mod export;
mod import;
mod layout;
mod names;
mod read;
mod shown;
mod track;
mod utf8;

pub use export::{ExportOptions, Exporter};
pub use import::import;
pub use utf8::Utf8Errors;

/// The short name of the format.
pub const NAME: &str = "speedscope";
