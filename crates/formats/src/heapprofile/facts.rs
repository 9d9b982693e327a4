//! The facts about the format, and how its files are detected.

use crate::detect::prefix::{member_starts_with, trim_start};
use crate::registry::{Detect, Facts};

/// The facts about `heapprofile`.
pub(crate) const FACTS: Facts = Facts {
    name: "heapprofile",
    aliases: &["v8-heap"],
    extensions: &["heapprofile"],
    description: "V8's sampling heap profile, of Node.js, Chrome and Deno",
    page: "formats/heapprofile.md",
    is_binary: false,
    is_stream: false,
    may_be_empty: false,
    read_as: None,
    detect: Detect::Content(is_heapprofile),
};

/// Detects an object with a head, functions and their sizes.
fn is_heapprofile(prefix: &[u8]) -> bool {
    trim_start(prefix).starts_with(b"{")
        && member_starts_with(prefix, b"\"head\"", b"{")
        && member_starts_with(prefix, b"\"callFrame\"", b"{")
        && member_starts_with(prefix, b"\"selfSize\"", b"")
}
