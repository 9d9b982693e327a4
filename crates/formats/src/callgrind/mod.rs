//! Callgrind profiles, for `callgrind_annotate` and KCachegrind.
//!
//! [`import`] reads those of Callgrind, Cachegrind, Xdebug and others: costs of lines and of calls, which are not stacks.
//!
//! The format is made for programs that count calls, which a sampling profiler does not. The exporter writes:
//!
//! * The cost of a line: the samples (and, if the period is known, the time) in which it was the line of the leaf.
//! * The cost of a call: the samples in which the caller had called the callee from that line. If a function is on a stack
//!   more than once, only its innermost occurrence counts. So the calls out of a function and its own lines add up to the
//!   samples that had it on the stack, and recursion counts once. A call of a function by itself is therefore never written.
//! * The number of calls, which the format requires: always 1, "at least one", because only that is true. 0 would claim
//!   less, but `callgrind_annotate` takes the cost of such a call for the caller's own. A `desc` line in the file says so.
//!
//! Functions are identified by name and file. Unknown lines are 0.

mod costs;
mod events;
mod export;
mod facts;
mod import;
mod read;
mod write;

pub use export::Exporter;
pub(crate) use facts::FACTS;
pub use import::import;

use crate::Weighed;
use crate::registry::{Codec, EventSupport, Exporting, Import};

/// The short name of the format.
pub const NAME: &str = "callgrind";

/// The event that counts the samples of a profile.
const SAMPLES: &str = "Samples";

/// Reads and writes the format.
pub(crate) const CODEC: Codec = Codec {
    import: Some(Import::Plain(|input, options, tables, sink| import(input, options, tables, sink))),
    export: Some(Exporting {
        events: EventSupport::Lost,
        start: |to, options| Box::new(Weighed::new(Exporter::new(to.output), options.value.as_deref())),
    }),
};
