//! The facts about the format, and how its files are detected.

use crate::detect::prefix::{member_starts_with, trim_start};
use crate::registry::{Detect, Facts};

/// The facts about `scalene`.
pub(crate) const FACTS: Facts = Facts {
    name: "scalene",
    aliases: &[],
    extensions: &["scalene.json"],
    description: "profile of Python's scalene, with its stacks",
    page: "formats/scalene.md",
    is_binary: false,
    is_stream: false,
    may_be_empty: false,
    read_as: None,
    detect: Detect::Content(is_scalene),
};

/// Detects an object with members that stand before the stacks, as `scalene_json.py` of scalene 2.4.0 orders them: by name.
fn is_scalene(prefix: &[u8]) -> bool {
    let has = |name| member_starts_with(prefix, name, b"");
    let has_order =
        has(b"\"alloc_samples\"") && (has(b"\"combined_stacks\"") || has(b"\"elapsed_time_sec\""));
    trim_start(prefix).starts_with(b"{") && has_order
}
