//! The facts about the format, and how its files are detected.

use crate::registry::{Detect, Facts};

/// The facts about `trc`.
pub(crate) const FACTS: Facts = Facts {
    name: "trc",
    aliases: &["dial9"],
    extensions: &["trc", "bin", "bin.active"],
    description: "dial9 event trace: what the workers and tasks of a Tokio program did",
    page: "formats/trc.md",
    is_binary: true,
    is_stream: true,
    may_be_empty: false,
    read_as: None,
    detect: Detect::Content(is_trc),
};

/// The magic of a `trc` batch.
const TRC_MAGIC: &[u8] = b"TRC\0";

/// Detects the magic; or, in a file damaged at the start, a whole header further on, followed by a frame.
fn is_trc(prefix: &[u8]) -> bool {
    let batch = |at| prefix.get(at + TRC_MAGIC.len()..).is_some_and(|rest| matches!(rest, [1, 1..=6, ..]));
    prefix.starts_with(TRC_MAGIC) || memchr::memmem::find_iter(prefix, TRC_MAGIC).any(batch)
}
