//! Mixes of `trc` events, each written by our writer and by the encoder of the reference: the same values in the
//! same order.

mod own;
mod request;
mod runtime;
mod sampled;

use anyhow::Result;
use borehole_formats::trc::{FieldKind, FieldType, Schema, Writer};
use dial9_trace_format::encoder::Encoder;

/// A mix of events.
#[derive(Clone, Copy)]
pub(crate) struct Mix {
    pub(crate) name: &'static str,
    /// How many events make a stream of some 100 MB, or 10 million if that is fewer.
    pub(crate) events: u64,
    /// Writes so many of them.
    pub(crate) ours: fn(&mut Writer<Vec<u8>>, u64) -> Result<()>,
    /// The same by the reference.
    pub(crate) reference: fn(&mut Encoder, u64) -> Result<()>,
}

/// All mixes.
pub(crate) const MIXES: [Mix; 6] = [
    Mix { name: "tokio", events: 10_000_000, ours: runtime::tokio, reference: runtime::tokio_reference },
    Mix { name: "polls", events: 10_000_000, ours: runtime::polls, reference: runtime::polls_reference },
    Mix { name: "own", events: 6_000_000, ours: own::write, reference: own::reference },
    Mix { name: "samples", events: 4_000_000, ours: sampled::write, reference: sampled::reference },
    Mix { name: "request", events: 1_200_000, ours: request::typed, reference: request::typed_reference },
    Mix { name: "dynamic", events: 2_500_000, ours: request::dynamic, reference: request::dynamic_reference },
];

/// When an event of a mix happens.
const fn time_ns(number: u64) -> u64 {
    1_000_000_000 + number * 600 + number % 200
}

/// A type of timestamped events whose fields all have to be there.
fn schema(name: &str, fields: &[(&str, FieldKind)]) -> Result<Schema> {
    let fields = fields.iter().map(|&(name, kind)| (name, FieldType::required(kind)));
    Ok(Schema::new(name, fields)?)
}
