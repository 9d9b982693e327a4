//! The facts about the format, and how its files are detected.

use crate::detect::prefix::{member_starts_with, trim_start};
use crate::registry::{Detect, Facts};

/// The facts about `cpuprofile`.
pub(crate) const FACTS: Facts = Facts {
    name: "cpuprofile",
    aliases: &["v8"],
    extensions: &["cpuprofile"],
    description: "V8's CPU profile, of Node.js, Chrome and Deno",
    page: "formats/cpuprofile.md",
    is_binary: false,
    is_stream: false,
    may_be_empty: false,
    read_as: None,
    detect: Detect::Content(is_cpuprofile),
};

/// Detects an object with a list of nodes and the functions in them. Traces of Chrome hold parts of such objects.
fn is_cpuprofile(prefix: &[u8]) -> bool {
    trim_start(prefix).starts_with(b"{")
        && member_starts_with(prefix, b"\"nodes\"", b"[")
        && member_starts_with(prefix, b"\"callFrame\"", b"{")
        && !member_starts_with(prefix, b"\"traceEvents\"", b"")
}
