//! The facts about the formats, and how their files are detected.

use crate::detect::prefix::lines;
use crate::registry::{Detect, Facts};

/// The facts about `pprof-text`.
pub(crate) const FACTS: Facts = Facts {
    name: "pprof-text",
    aliases: &["heap-text", "go-text"],
    extensions: &["pprof.txt"],
    description: "text of heap, contention and goroutine profiles, of gperftools and Go",
    page: "formats/pprof-text.md",
    is_binary: false,
    is_stream: false,
    may_be_empty: false,
    read_as: None,
    detect: Detect::Content(is_text_profile),
};

/// The facts about `gperftools`.
pub(crate) const CPU_FACTS: Facts = Facts {
    name: "gperftools",
    aliases: &["gperf"],
    extensions: &["gperftools"],
    description: "the CPU profile of gperftools (CPUPROFILE=FILE)",
    page: "formats/pprof-text.md",
    is_binary: true,
    is_stream: false,
    may_be_empty: false,
    read_as: None,
    detect: Detect::Content(|prefix| word_bytes(prefix).is_some()),
};

/// Detects the first line. `--- threadz` and `--- heapz` are other texts.
fn is_text_profile(prefix: &[u8]) -> bool {
    let first = lines(prefix).next().unwrap_or_default();
    let heads = [&b"heap profile:"[..], b"--- contention:", b"--- mutex:"];
    heads.iter().any(|head| first.starts_with(head)) || is_count_profile(first)
}

/// Detects `goroutine profile: total 12`.
fn is_count_profile(line: &[u8]) -> bool {
    const HEAD: &[u8] = b" profile: total ";
    let Some(at) = memchr::memchr(b' ', line).filter(|&at| at > 0) else { return false };
    let total = line[at..].strip_prefix(HEAD).map(<[u8]>::trim_ascii_end);
    total.is_some_and(|total| !total.is_empty() && total.iter().all(u8::is_ascii_digit))
}

/// The bytes of a machine word in a CPU profile: 0, the 3 header words that follow, version 0, then the period. `None` for other
/// bytes.
///
/// Source: gperftools 2.10, `docs/cpuprofile-fileformat.html`.
pub(crate) fn word_bytes(bytes: &[u8]) -> Option<usize> {
    let begins = |words: [&[u8]; 3]| {
        let mut rest = bytes;
        words.into_iter().all(|word| rest.strip_prefix(word).map(|behind| rest = behind).is_some())
            && rest.iter().take(4).any(|&byte| byte != 0)
    };
    let (zero, three) = ([0; 8], [3, 0, 0, 0, 0, 0, 0, 0]);
    if begins([&zero, &three, &zero]) {
        return Some(8);
    }
    begins([&zero[..4], &three[..4], &zero[..4]]).then_some(4)
}
