//! The facts about the format, and how its files are detected.

use crate::registry::{Detect, Facts};

/// The facts about `perf-data`.
pub(crate) const FACTS: Facts = Facts {
    name: "perf-data",
    aliases: &["perf.data"],
    extensions: &["perf.data"],
    description: "perf.data, as perf record of Linux writes it",
    page: "formats/perf-data.md",
    is_binary: true,
    is_stream: false,
    may_be_empty: false,
    read_as: None,
    // `PERFFILE` is the form of before 2009, which is recognised and not read.
    detect: Detect::Content(|prefix| prefix.starts_with(b"PERFILE2") || prefix.starts_with(b"2ELIFREP")),
};
