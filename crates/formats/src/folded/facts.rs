//! The facts about the format, and how its files are detected.

use crate::detect::DETECT_BYTES;
use crate::detect::lines::LineKinds;
use crate::detect::prefix::{contains, is_text, lines};
use crate::registry::{Detect, Facts};

/// The facts about `folded`.
pub(crate) const FACTS: Facts = Facts {
    name: "folded",
    aliases: &[],
    extensions: &["folded", "folded.txt"],
    description: "folded stacks: one line per stack, frames joined by semicolons, and a count",
    page: "formats/folded.md",
    is_binary: false,
    is_stream: true,
    may_be_empty: true,
    read_as: None,
    detect: Detect::Lines(is_folded),
};

/// Detects text in which most meaningful lines end in a number, and a quarter of these are certainly stacks. A line whose end
/// is out of view must have semicolons.
fn is_folded(prefix: &[u8]) -> bool {
    let cut = is_text(prefix) && prefix.len() == DETECT_BYTES && memchr::memchr(b'\n', prefix).is_none();
    if cut {
        return contains(prefix, b";") && !contains(prefix, b"{");
    }
    let mut head = lines(prefix).take_while(|line| line.starts_with(b"# "));
    if head.any(|line| line.starts_with(b"# austin: ")) {
        return true;
    }
    let LineKinds { said, counted, stacks, .. } = LineKinds::of(prefix);
    is_text(prefix) && stacks > 0 && counted * 2 >= said && stacks * 4 >= counted
}
