//! The facts about the format, and how its files are detected.

use crate::detect::prefix::{contains, trim_start};
use crate::registry::{Detect, Facts};

/// The facts about `flamegraph`.
pub(crate) const FACTS: Facts = Facts {
    name: "flamegraph",
    aliases: &["svg", "flame"],
    extensions: &["svg"],
    description: "flame graph as SVG, for a browser",
    page: "",
    is_binary: false,
    is_stream: false,
    may_be_empty: false,
    read_as: None,
    detect: Detect::Content(is_svg),
};

fn is_svg(prefix: &[u8]) -> bool {
    trim_start(prefix).starts_with(b"<") && contains(prefix, b"<svg")
}
