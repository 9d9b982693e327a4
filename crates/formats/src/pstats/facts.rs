//! The facts about the format, and how its files are detected.

use crate::registry::{Detect, Facts};

/// The facts about `pstats`.
pub(crate) const FACTS: Facts = Facts {
    name: "pstats",
    aliases: &[],
    extensions: &["pstats"],
    description: "statistics of functions for Python's pstats module, as CPython's replay writes them",
    page: "formats/tachyon.md",
    is_binary: true,
    is_stream: false,
    may_be_empty: false,
    read_as: None,
    detect: Detect::Never,
};

/// The facts about `pstats-text`.
pub(crate) const TEXT_FACTS: Facts = Facts {
    name: "pstats-text",
    aliases: &[],
    extensions: &["pstats.txt"],
    description: "statistics of functions, as CPython's replay prints them",
    page: "formats/tachyon.md",
    is_binary: false,
    is_stream: false,
    may_be_empty: false,
    read_as: None,
    detect: Detect::Never,
};
