//! The facts about the format, and how its files are detected.

use crate::detect::prefix::lines;
use crate::registry::{Detect, Facts};

/// The facts about `xdebug-trace`.
pub(crate) const FACTS: Facts = Facts {
    name: "xdebug-trace",
    aliases: &["xt"],
    extensions: &["xt"],
    description: "function trace of PHP's Xdebug (xdebug.mode=trace), for people or for programs",
    page: "formats/xdebug-trace.md",
    is_binary: false,
    is_stream: false,
    may_be_empty: false,
    read_as: None,
    detect: Detect::Content(is_trace),
};

/// Detects the first lines: of the format for programs, its version stands before the start.
fn is_trace(prefix: &[u8]) -> bool {
    let mut lines = lines(prefix);
    let first = lines.next().unwrap_or_default();
    first.starts_with(b"TRACE START [")
        || (first.starts_with(b"Version: ")
            && lines.next().is_some_and(|second| second.starts_with(b"File format: ")))
}
