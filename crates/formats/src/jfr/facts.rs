//! The facts about the format, and how its files are detected.

use crate::registry::{Detect, Facts};

/// The facts about `jfr`.
pub(crate) const FACTS: Facts = Facts {
    name: "jfr",
    aliases: &["java"],
    extensions: &["jfr"],
    description: "recordings of Java Flight Recorder, and of async-profiler",
    page: "formats/jfr.md",
    is_binary: true,
    is_stream: false,
    may_be_empty: false,
    read_as: None,
    detect: Detect::Content(|prefix| prefix.starts_with(b"FLR\0")),
};
