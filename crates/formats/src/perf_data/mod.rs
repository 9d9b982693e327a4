//! The files that `perf record` of Linux writes.
//!
//! A header, the attributes of the recorded events, the records as the kernel wrote them (samples, mappings, names of threads),
//! and descriptions of the machine. Records are in the order of the CPUs' buffers: `rounds` puts them in order of time.
//! `spaces` knows which file an address belongs to. Function names are not in the file, so frames are named by their address
//! in their module; `modules` states the build IDs, by which they can be found later. `docs/formats/perf-data.md` has the details.

mod facts;
mod fields;
mod header;
mod import;
mod layout;
mod modules;
mod read;
mod rounds;
mod spaces;

pub(crate) use facts::FACTS;
pub use import::{MOST_EVENTS, import, import_document};

use crate::documents::whole::read_whole;
use crate::registry::{Codec, Import};

/// The short name of the format.
pub const NAME: &str = "perf-data";

/// Reads the format.
pub(crate) const CODEC: Codec = Codec {
    import: Some(Import::Document {
        read: |input, options| read_whole(NAME, std::io::BufReader::new(input), &options.limits),
        import: import_document,
    }),
    export: None,
};
