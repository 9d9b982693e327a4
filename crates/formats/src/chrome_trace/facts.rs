//! The facts about the format, and how its files are detected.

use crate::registry::{Detect, Facts};

/// The facts about `chrome-trace`.
pub(crate) const FACTS: Facts = Facts {
    name: "chrome-trace",
    aliases: &["trace-events"],
    extensions: &["trace.json", "chrome.json"],
    description: "timeline as JSON trace events, for chrome://tracing and other viewers",
    page: "formats/chrome-trace.md",
    is_binary: false,
    is_stream: false,
    may_be_empty: false,
    read_as: None,
    detect: Detect::Never,
};
