//! The facts about the format, and how its files are detected.

use crate::registry::{Detect, Facts};

/// The facts about `mojo`.
pub(crate) const FACTS: Facts = Facts {
    name: "mojo",
    aliases: &["austin"],
    extensions: &["mojo"],
    description: "MOJO, the binary profiles of Austin",
    page: "formats/mojo.md",
    is_binary: true,
    is_stream: true,
    may_be_empty: false,
    read_as: None,
    // The version behind the magic is small, so that no word of a text looks like it.
    detect: Detect::Content(|prefix| {
        prefix.starts_with(b"MOJ") && prefix.get(3).is_some_and(|version| (1..b' ').contains(version))
    }),
};
