//! The facts about the format, and how its files are detected.

use crate::detect::prefix::{member_starts_with, trim_start};
use crate::registry::{Detect, Facts};

/// The facts about `stackprof`.
pub(crate) const FACTS: Facts = Facts {
    name: "stackprof",
    aliases: &[],
    extensions: &["stackprof.json", "stackprof"],
    description: "profile of Ruby's stackprof, as JSON (stackprof --json)",
    page: "formats/stackprof.md",
    is_binary: false,
    is_stream: false,
    may_be_empty: false,
    read_as: None,
    detect: Detect::Content(is_stackprof),
};

/// Detects an object with the facts that stand before the frames.
fn is_stackprof(prefix: &[u8]) -> bool {
    trim_start(prefix).starts_with(b"{")
        && member_starts_with(prefix, b"\"gc_samples\"", b"")
        && member_starts_with(prefix, b"\"missed_samples\"", b"")
        && member_starts_with(prefix, b"\"frames\"", b"{")
}
