//! The facts about the format, and how its files are detected.

use crate::detect::prefix::{member_starts_with, trim_start};
use crate::registry::{Detect, Facts};

/// The facts about `jsonl`.
pub(crate) const FACTS: Facts = Facts {
    name: "jsonl",
    aliases: &["ndjson", "json-lines"],
    extensions: &["jsonl", "ndjson"],
    description: "JSON Lines, one object per sample: the lossless output of dump",
    page: "dump.md",
    is_binary: false,
    is_stream: true,
    may_be_empty: false,
    read_as: None,
    detect: Detect::Content(is_jsonl),
};

/// Detects a JSON object of type `file` in the first line.
fn is_jsonl(prefix: &[u8]) -> bool {
    let first = trim_start(prefix).split(|&byte| byte == b'\n').next().unwrap_or_default();
    first.starts_with(b"{") && member_starts_with(first, b"\"type\"", b"\"file\"")
}
