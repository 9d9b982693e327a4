//! The facts about the format, and how its files are detected.

use crate::detect::prefix::{member_starts_with, trim_start};
use crate::registry::{Detect, Facts};

/// The facts about `dhat`.
pub(crate) const FACTS: Facts = Facts {
    name: "dhat",
    aliases: &[],
    extensions: &["dhat.json", "dhat"],
    description: "heap profile of Valgrind's DHAT, and of Rust programs with the crate dhat",
    page: "formats/dhat.md",
    is_binary: false,
    is_stream: false,
    may_be_empty: false,
    read_as: None,
    detect: Detect::Content(is_dhat),
};

/// Detects an object with the version, which stands first.
fn is_dhat(prefix: &[u8]) -> bool {
    trim_start(prefix).starts_with(b"{") && member_starts_with(prefix, b"\"dhatFileVersion\"", b"")
}
