//! The facts about the format, and how its files are detected.

use crate::registry::{Detect, Facts};

/// The facts about `rbspy`.
pub(crate) const FACTS: Facts = Facts {
    name: "rbspy",
    aliases: &[],
    extensions: &["rbspy"],
    description: "raw recording of Ruby's rbspy (rbspy record --raw-file)",
    page: "formats/rbspy.md",
    is_binary: false,
    is_stream: false,
    may_be_empty: false,
    read_as: None,
    detect: Detect::Content(|prefix| prefix.starts_with(b"rbspy0") && prefix.get(7) == Some(&b'\n')),
};
