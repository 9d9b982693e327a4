//! The facts about the format, and how its files are detected.

use crate::detect::prefix::{member_starts_with, trim_start};
use crate::registry::{Detect, Facts};

/// The facts about `chrome-trace`.
pub(crate) const FACTS: Facts = Facts {
    name: "chrome-trace",
    aliases: &["trace-events"],
    extensions: &["trace.json", "chrome.json"],
    description: "JSON trace events, of Chrome and many other programs",
    page: "formats/chrome-trace.md",
    is_binary: false,
    is_stream: false,
    may_be_empty: false,
    read_as: None,
    detect: Detect::Content(is_chrome_trace),
};

/// Detects an object with `traceEvents`, or a list of objects with phases.
fn is_chrome_trace(prefix: &[u8]) -> bool {
    let text = trim_start(prefix);
    let has = |member: &[u8]| member_starts_with(prefix, member, b"");
    let is_list = text.strip_prefix(b"[").is_some_and(|rest| trim_start(rest).starts_with(b"{"));
    (text.starts_with(b"{") && member_starts_with(prefix, b"\"traceEvents\"", b"["))
        || (is_list && has(b"\"ph\"") && has(b"\"pid\""))
}
