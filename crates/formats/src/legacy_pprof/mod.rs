//! The formats that pprof read before it had its own: CPU profiles of gperftools (`gperftools`), and the text of heap, contention
//! and goroutine profiles (`pprof-text`), which gperftools and Go's `debug=1` write.
//!
//! ```text
//! heap profile: 55: 5327680 [85: 7048000] @ heap/8192
//! 50: 5324800 [50: 5324800] @ 0x4b41f1 0x4b4398
//! #   0x4b41f0    main.keep+0x50  ./prof.go:14
//! ```
//!
//! A sample is its numbers and addresses, from the leaf to the root. What is at an address is said below it, or by the list of mapped
//! files at the end. So samples wait for the end. `docs/formats/pprof-text.md` has the details.

mod cpu;
mod facts;
mod held;
mod import;
mod maps;
mod text;

pub(crate) use facts::{CPU_FACTS, FACTS};
pub use import::{import, import_cpu};

use crate::registry::{Codec, Import};

/// The short name of the text.
pub const NAME: &str = "pprof-text";

/// The short name of CPU profiles.
pub const CPU_NAME: &str = "gperftools";

/// Reads the text.
pub(crate) const CODEC: Codec = Codec {
    import: Some(Import::Plain(|input, options, tables, sink| import(input, options, tables, sink))),
    export: None,
};

/// Reads CPU profiles.
pub(crate) const CPU_CODEC: Codec = Codec {
    import: Some(Import::Plain(|input, options, tables, sink| import_cpu(input, options, tables, sink))),
    export: None,
};
