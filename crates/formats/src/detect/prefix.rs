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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_is_left_out_only_if_it_may_be_cut() {
        let text = |bytes: usize| {
            let mut text = b"a\n".to_vec();
            text.resize(bytes, b'b');
            text
        };
        for (bytes, count) in [(DETECT_BYTES - 1, 2), (DETECT_BYTES, 1), (DETECT_BYTES + 1, 2)] {
            assert_eq!(lines(&text(bytes)).count(), count, "{bytes}");
        }
        let endless = vec![b'b'; DETECT_BYTES];
        assert_eq!(lines(&endless).count(), 1);
    }

    #[test]
    fn a_zero_among_the_first_bytes_is_no_text() {
        let with_zero = |at: usize| {
            let mut text = [b'a'; 20];
            text[at] = 0;
            is_text(&text)
        };
        assert_eq!([0, 7, 8, 9].map(with_zero), [false, false, true, true]);
        assert!(is_text(b"") && is_text(b"a"));
    }

    #[test]
    fn members_are_found_with_the_beginning_of_their_value() {
        let found = |json: &str| member_starts_with(json.as_bytes(), b"\"key\"", b"[");
        assert!(found("{\"key\":[1]}") && found("{ \"key\" :\n [1]}"));
        assert!(found("{\"a\":\"key\",\"key\":[]}"), "a value of that name before it");
        assert!(
            !found("{\"key\":{}}")
                && !found("[\"key\",[1]]")
                && !found("{\"keys\":[1]}")
                && !found("{\"key\"")
        );
        assert_eq!(trim_start(b"\xef\xbb\xbf \n{}"), b"{}");
        assert_eq!(trim_start(b" \xef\xbb\xbf{}"), b"\xef\xbb\xbf{}");
    }
}
