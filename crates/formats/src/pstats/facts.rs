//! The facts about the format, and how its files are detected.

use crate::registry::{Detect, Facts};

/// The facts about `pstats`.
pub(crate) const FACTS: Facts = Facts {
    name: "pstats",
    aliases: &[],
    extensions: &["pstats"],
    description: "statistics of functions of cProfile, for Python's pstats module",
    page: "formats/pstats.md",
    is_binary: true,
    is_stream: false,
    may_be_empty: false,
    read_as: None,
    detect: Detect::Content(is_statistics),
};

/// Detects a dictionary whose first key is a tuple of three, or the one that marks samples.
///
/// Source: CPython 3.8 to 3.15, `Lib/cProfile.py`, `create_stats`; `Python/marshal.c`, `TYPE_DICT`, `TYPE_TUPLE`,
/// `TYPE_SMALL_TUPLE`, `FLAG_REF`.
fn is_statistics(bytes: &[u8]) -> bool {
    match bytes {
        [b'{' | 0xfb, b')' | 0xa9, 3, ..] => true,
        [b'{' | 0xfb, b'(' | 0xa8, rest @ ..] => rest.starts_with(&[3, 0, 0, 0]),
        [b'{' | 0xfb, b')' | 0xa9, 1, rest @ ..] => {
            memchr::memmem::find(&rest[..rest.len().min(16)], b"__sampled__").is_some()
        }
        _ => false,
    }
}

/// The facts about `pstats-text`.
pub(crate) const TEXT_FACTS: Facts = Facts {
    name: "pstats-text",
    aliases: &[],
    extensions: &["pstats.txt"],
    description: "statistics of functions, as CPython's replay prints them",
    page: "formats/pstats.md",
    is_binary: false,
    is_stream: false,
    may_be_empty: false,
    read_as: None,
    detect: Detect::Never,
};
