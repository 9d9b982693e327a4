//! The facts about the format, and how its files are detected.

use crate::detect::prefix::{contains, trim_start};
use crate::registry::{Detect, Facts};

/// The facts about `gecko`.
pub(crate) const FACTS: Facts = Facts {
    name: "gecko",
    aliases: &["firefox"],
    extensions: &["gecko.json"],
    description: "profile of Firefox or its profiler, which samply and CPython's replay write",
    page: "formats/gecko.md",
    is_binary: false,
    is_stream: false,
    may_be_empty: false,
    read_as: None,
    detect: Detect::Content(is_gecko),
};

/// Detects a JSON object with the version of processed profiles, or with what Firefox begins its own with.
fn is_gecko(prefix: &[u8]) -> bool {
    let is_processed = || contains(prefix, b"\"preprocessedProfileVersion\"");
    // Unprocessed: the list of mapped libraries comes first, and may be longer than what is looked at.
    let has_libs = || {
        [&b"\"libs\""[..], b"\"breakpadId\"", b"\"debugPath\""].iter().all(|member| contains(prefix, member))
    };
    let has_rows =
        || [&b"\"stackTable\""[..], b"\"schema\"", b"\"data\""].iter().all(|member| contains(prefix, member));
    trim_start(prefix).starts_with(b"{") && (is_processed() || has_libs() || has_rows())
}
