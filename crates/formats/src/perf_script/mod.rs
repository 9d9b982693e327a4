//! The text that `perf script` of Linux prints, which the tools of that family read.
//!
//! ```text
//! php 4711/4712 [001] 12.000250:     250000 cpu-clock:pppH:
//!         55d0c0a0 zif_usleep+0x2a (/usr/bin/php8.2)
//!         55d0b1c4 execute_ex+0x58 (/usr/bin/php8.2)
//!
//! ```
//!
//! A sample is a header and its call chain from the leaf to the root, up to a blank line. The header has the name of the thread,
//! process and thread, CPU, time, period and event, as far as they were selected. `docs/formats/perf-script.md` has the details.

mod export;
mod facts;
mod header;
mod import;
mod read;

pub use export::Exporter;
pub(crate) use facts::FACTS;
pub use import::{MOST_EVENTS, import};

pub use crate::lines::runs::LONGEST_RUN;

use crate::registry::{Codec, EventSupport, Exporting, Import};

/// The short name of the format.
pub const NAME: &str = "perf-script";

/// Reads and writes the format.
pub(crate) const CODEC: Codec = Codec {
    import: Some(Import::Plain(|input, options, tables, sink| import(input, options, tables, sink))),
    export: Some(Exporting {
        events: EventSupport::Lost,
        start: |to, options| Box::new(Exporter::new(to.output, options.value.as_deref())),
    }),
};
