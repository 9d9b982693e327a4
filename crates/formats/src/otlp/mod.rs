//! Profiles of OpenTelemetry (OTLP), development version, the format of its collector.
//!
//! A document holds profiles by resource, which is a process here, and one dictionary for all of them. Samples of one
//! stack and the same attributes are one record, with a value and a time for each observation. The wire is read and
//! written by hand, as in the other formats, so that errors of an import can state the byte offset.
//!
//! Files hold one document or several: in binary form, with their lengths before them, or as JSON.
//!
//! The signal is under development and its messages still change; those read and written here are of release 1.10.0 of
//! opentelemetry-proto. Mapping to the model: `docs/formats/otlp.md`.

mod attributes;
mod dictionary;
mod documents;
mod encode;
mod export;
mod facts;
mod fill;
mod groups;
mod import;
mod json;
mod layout;
mod read;
mod resolve;
mod rows;
mod stacks;

pub use export::Exporter;
pub(crate) use facts::FACTS;
pub use fill::fill_symbols;
pub use import::import;

use crate::registry::{Codec, EventSupport, Exporting, Import};

/// The short name of the format.
pub const NAME: &str = "otlp";

/// Reads and writes the format.
pub(crate) const CODEC: Codec = Codec {
    import: Some(Import::Plain(|input, options, tables, sink| import(input, options, tables, sink))),
    export: Some(Exporting {
        events: EventSupport::Lost,
        start: |to, _| Box::new(Exporter::new(to.output, to.spool)),
    }),
};
