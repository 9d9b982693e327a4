//! The facts about the format, and how its files are detected.

use crate::detect::prefix::{contains, trim_start};
use crate::registry::{Detect, Facts};

/// The facts about `gecko`.
pub(crate) const FACTS: Facts = Facts {
    name: "gecko",
    aliases: &["firefox"],
    extensions: &["gecko.json"],
    description: "processed profile of Firefox Profiler, which samply and CPython's replay write",
    page: "formats/gecko.md",
    is_binary: false,
    is_stream: false,
    may_be_empty: false,
    read_as: None,
    detect: Detect::Content(is_gecko),
};

/// Detects a JSON object with the version of processed profiles.
fn is_gecko(prefix: &[u8]) -> bool {
    trim_start(prefix).starts_with(b"{") && contains(prefix, b"\"preprocessedProfileVersion\"")
}
