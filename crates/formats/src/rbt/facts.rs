//! The facts about the format, and how its files are detected.

use crate::registry::{Detect, Facts};

/// The facts about `rbt`.
pub(crate) const FACTS: Facts = Facts {
    name: "rbt",
    aliases: &["reli", "rbt-bundled"],
    extensions: &["rbt"],
    description: "reli binary trace: call-stack samples of PHP",
    page: "formats/rbt.md",
    is_binary: true,
    is_stream: true,
    may_be_empty: true,
    read_as: None,
    detect: Detect::Content(is_rbt),
};

/// The magic of an `rbt` segment.
const RBT_MAGIC: &[u8] = b"RELI";

/// The length of a segment header: magic, version, flags, reserved, period, reserved.
const RBT_HEADER_BYTES: usize = 16;

/// Detects the magic and a byte that no text has there; only a beginning of the magic, which a crash may leave; or, in a file
/// damaged at the start, a plausible header further on.
fn is_rbt(prefix: &[u8]) -> bool {
    match prefix.strip_prefix(RBT_MAGIC) {
        Some([]) => true,
        Some([version, ..]) if *version < b'\t' => true,
        _ if prefix.len() < RBT_MAGIC.len() => !prefix.is_empty() && RBT_MAGIC.starts_with(prefix),
        _ => memchr::memmem::find_iter(prefix, RBT_MAGIC).any(|at| is_rbt_header(&prefix[at..])),
    }
}

fn is_rbt_header(bytes: &[u8]) -> bool {
    let Some(header) = bytes.get(..RBT_HEADER_BYTES) else { return false };
    header[4] == 1 && header[5] <= 1 && header[6..8] == [0; 2] && header[12..] == [0; 4]
}
