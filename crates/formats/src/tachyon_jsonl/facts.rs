//! The facts about the format, and how its files are detected.

use crate::detect::prefix::{contains, member_starts_with, trim_start};
use crate::registry::{Detect, Facts};

/// The facts about `tachyon-jsonl`.
pub(crate) const FACTS: Facts = Facts {
    name: "tachyon-jsonl",
    aliases: &[],
    extensions: &["tachyon.jsonl"],
    description: "sums of frames as JSON Lines, as CPython's replay --jsonl writes them",
    page: "formats/tachyon.md",
    is_binary: false,
    is_stream: false,
    may_be_empty: false,
    read_as: None,
    detect: Detect::Content(is_tachyon_jsonl),
};

/// Detects a JSON object of type `meta`, for a run, in the first line.
fn is_tachyon_jsonl(prefix: &[u8]) -> bool {
    let first = trim_start(prefix).split(|&byte| byte == b'\n').next().unwrap_or_default();
    first.starts_with(b"{")
        && member_starts_with(first, b"\"type\"", b"\"meta\"")
        && contains(first, b"\"run_id\"")
}
