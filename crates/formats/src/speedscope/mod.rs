//! The file format of the viewer speedscope: JSON.
//!
//! Frames are stored once; each process and thread is a profile of its own, a list of stacks with weights. Data of the
//! model that the format cannot hold (the process of a profile, the number of samples of an entry) is written in a
//! member `borehole` of the profile, which the viewer ignores.
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
