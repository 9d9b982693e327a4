//! Mixes of `trc` events, each written by our writer and by the encoder of the reference: the same values in the
//! same order, as types that are derived for on both sides unless the mix is one of types that are made at run time.

mod own;
mod read;
mod request;
mod runtime;
mod sampled;

use anyhow::Result;
use borehole_trc::Writer;
use dial9_trace_format::encoder::Encoder;

pub(crate) use read::{ours as read, reference as read_by_reference};

/// A mix of events.
#[derive(Clone, Copy)]
pub(crate) struct Mix {
    pub(crate) name: &'static str,
    /// How many events make a stream of some 100 MB, or 10 million if that is fewer.
    pub(crate) events: u64,
    /// Writes so many of them.
    pub(crate) ours: fn(&mut Writer<Vec<u8>>, u64) -> Result<()>,
    /// Writes so many of them by the reference.
    pub(crate) reference: fn(&mut Encoder, u64) -> Result<()>,
    /// Whether its events can be read as values of types.
    pub(crate) is_read: bool,
}

/// All mixes.
pub(crate) const MIXES: [Mix; 6] = [
    Mix {
        name: "tokio",
        events: 10_000_000,
        ours: runtime::tokio,
        reference: runtime::tokio_reference,
        is_read: true,
    },
    Mix {
        name: "polls",
        events: 10_000_000,
        ours: runtime::polls,
        reference: runtime::polls_reference,
        is_read: true,
    },
    Mix { name: "own", events: 6_000_000, ours: own::write, reference: own::reference, is_read: false },
    Mix {
        name: "samples",
        events: 4_000_000,
        ours: sampled::write,
        reference: sampled::reference,
        is_read: true,
    },
    Mix {
        name: "request",
        events: 1_200_000,
        ours: request::typed,
        reference: request::typed_reference,
        is_read: false,
    },
    Mix {
        name: "dynamic",
        events: 2_500_000,
        ours: request::dynamic,
        reference: request::dynamic_reference,
        is_read: false,
    },
];

/// When an event of a mix happens.
const fn time_ns(number: u64) -> u64 {
    1_000_000_000 + number * 600 + number % 200
}
