//! The facts about the format, and how its files are detected.

use crate::registry::{Detect, Facts};

/// The facts about `tachyon`.
pub(crate) const FACTS: Facts = Facts {
    name: "tachyon",
    aliases: &["tach", "python"],
    extensions: &["bin", "tach", "tachyon"],
    description: "binary profile of CPython 3.15: call-stack samples of Python",
    page: "formats/tachyon.md",
    is_binary: true,
    is_stream: false,
    may_be_empty: true,
    read_as: None,
    detect: Detect::Content(is_tachyon),
};

/// The magic of a `tachyon` file, in the byte orders in which it is written.
const TACHYON_MAGICS: [&[u8]; 2] = [b"HCAT", b"TACH"];

/// The length of a `tachyon` header.
const TACHYON_HEADER_BYTES: usize = 64;

/// Detects the magic and the version in the same byte order; or the header that a killed profiler leaves: zeros, followed by
/// a Zstandard stream or a thread record.
fn is_tachyon(prefix: &[u8]) -> bool {
    match prefix.get(4..8) {
        Some(version) if prefix.starts_with(TACHYON_MAGICS[0]) => version[1..] == [0; 3],
        Some(version) if prefix.starts_with(TACHYON_MAGICS[1]) => version[..3] == [0; 3],
        _ => is_unfinished_tachyon(prefix),
    }
}

fn is_unfinished_tachyon(prefix: &[u8]) -> bool {
    let Some((header, samples)) = prefix.split_at_checked(TACHYON_HEADER_BYTES) else { return false };
    let is_record = |head: &[u8]| head[..8] != [0; 8] && head[12] <= 3 && is_small(&head[8..12]);
    header.iter().all(|&byte| byte == 0)
        && (samples.starts_with(b"\x28\xb5\x2f\xfd") || samples.get(..13).is_some_and(is_record))
}

/// Whether four bytes are a number below 2¹⁶ in either byte order.
fn is_small(bytes: &[u8]) -> bool {
    bytes[..2] == [0; 2] || bytes[2..] == [0; 2]
}
