//! Tests of the first bytes of an input. Each looks at a bounded number of bytes, allocates nothing, and takes any bytes.

use super::DETECT_BYTES;

/// The maximum number of lines tested.
pub(crate) const MAX_LINES: usize = 64;

/// The first bytes, in which no text has a zero. Names of PHP's anonymous classes have one further on.
pub(crate) const ZERO_FREE_BYTES: usize = 8;

/// Whether this can be text, and not binary data that happens to contain lines.
pub(crate) fn is_text(prefix: &[u8]) -> bool {
    !prefix.iter().take(ZERO_FREE_BYTES).any(|&byte| byte == 0)
}

/// The lines of a text; the last one is left out if the prefix may end in the middle of it.
pub(crate) fn lines(prefix: &[u8]) -> impl Iterator<Item = &[u8]> {
    let whole = match memchr::memrchr(b'\n', prefix) {
        Some(at) if prefix.len() == DETECT_BYTES => &prefix[..at],
        _ => prefix,
    };
    whole.split(|&byte| byte == b'\n')
}

pub(crate) fn trim_start(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes).trim_ascii_start()
}

pub(crate) fn contains(bytes: &[u8], needle: &[u8]) -> bool {
    memchr::memmem::find(bytes, needle).is_some()
}

/// Whether a JSON text has `key`, with a value that starts with `value`.
pub(crate) fn member_starts_with(json: &[u8], key: &[u8], value: &[u8]) -> bool {
    memchr::memmem::find_iter(json, key).any(|at| {
        let rest = trim_start(&json[at + key.len()..]);
        rest.strip_prefix(b":").is_some_and(|rest| trim_start(rest).starts_with(value))
    })
}
