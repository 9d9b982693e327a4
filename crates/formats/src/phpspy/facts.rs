//! The facts about the format, and how its files are detected.

use crate::detect::lines::LineKinds;
use crate::detect::prefix::is_text;
use crate::registry::{Detect, Facts};

/// The facts about `phpspy`.
pub(crate) const FACTS: Facts = Facts {
    name: "phpspy",
    aliases: &["phpspy-text"],
    extensions: &["phpspy", "phpspy.txt"],
    description: "phpspy text: one line per frame, a blank line between samples",
    page: "formats/phpspy.md",
    is_binary: false,
    is_stream: true,
    may_be_empty: true,
    read_as: None,
    detect: Detect::Lines(is_phpspy),
};

/// Detects text in which most meaningful lines are frames: a depth, a name, a file and line.
fn is_phpspy(prefix: &[u8]) -> bool {
    let LineKinds { said, frames, .. } = LineKinds::of(prefix);
    is_text(prefix) && frames > 0 && frames * 2 >= said
}
