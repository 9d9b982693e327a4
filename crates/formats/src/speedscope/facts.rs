//! The facts about the format, and how its files are detected.

use crate::detect::prefix::{contains, trim_start};
use crate::registry::{Detect, Facts};

/// The facts about `speedscope`.
pub(crate) const FACTS: Facts = Facts {
    name: "speedscope",
    aliases: &[],
    extensions: &["speedscope.json", "speedscope"],
    description: "speedscope document: JSON for the viewer of that name",
    page: "formats/speedscope.md",
    is_binary: false,
    is_stream: false,
    may_be_empty: false,
    read_as: None,
    detect: Detect::Content(is_speedscope),
};

/// Detects a JSON object that names its schema, or has both members that no other profile has.
fn is_speedscope(prefix: &[u8]) -> bool {
    let schema = || {
        memchr::memmem::find_iter(prefix, b"\"$schema\"").any(|at| {
            let line = prefix[at..].split(|&byte| byte == b'\n' || byte == b',').next();
            contains(line.unwrap_or_default(), b"speedscope")
        })
    };
    let members = || contains(prefix, b"\"shared\"") && contains(prefix, b"\"profiles\"");
    trim_start(prefix).starts_with(b"{") && (schema() || members())
}
