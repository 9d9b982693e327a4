//! The facts about the format, and how its files are detected.

use crate::detect::prefix::{MAX_LINES, lines};
use crate::registry::{Detect, Facts};

/// The facts about `callgrind`.
pub(crate) const FACTS: Facts = Facts {
    name: "callgrind",
    aliases: &["cachegrind"],
    extensions: &["callgrind", "callgrind.out"],
    description: "costs of Callgrind, Cachegrind and Xdebug, for KCachegrind",
    page: "formats/callgrind.md",
    is_binary: false,
    is_stream: false,
    may_be_empty: false,
    read_as: None,
    detect: Detect::Content(is_callgrind),
};

/// Detects the signature line, or the header line that names the events.
fn is_callgrind(prefix: &[u8]) -> bool {
    let header = |line: &[u8]| line.starts_with(b"events:") || line.starts_with(b"# callgrind format");
    lines(prefix).take(MAX_LINES).any(header)
}
