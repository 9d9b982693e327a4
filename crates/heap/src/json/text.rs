//! Strings and numbers in the format of PHP's `json_encode`.

use std::io::{self, Write};

use borehole_text::put_ascii_json;

use crate::sink::ValueKind;

/// Writes `text` as a string: escapes characters beyond ASCII and `/`, and replaces each maximal invalid part of UTF-8
/// by U+FFFD. Source: PHP 8.2, `json_encode` with `JSON_INVALID_UTF8_SUBSTITUTE`.
pub(crate) fn put_string(out: &mut impl Write, text: &[u8]) -> io::Result<()> {
    put_ascii_json(out, text, |byte| matches!(byte, b' '..=b'\x7f') && !matches!(byte, b'"' | b'\\' | b'/'))
}

/// Writes the value of an attribute. A text that does not match its kind, as in damaged files, is written as a string.
pub(super) fn put_value(out: &mut impl Write, text: &[u8], kind: ValueKind) -> io::Result<()> {
    match kind {
        ValueKind::Null => out.write_all(b"null"),
        ValueKind::Bool => out.write_all(if matches!(text, b"" | b"0") { b"false" } else { b"true" }),
        ValueKind::Integer | ValueKind::Float if is_number(text) => out.write_all(text),
        ValueKind::Json if serde_json::from_slice::<serde_json::Value>(text).is_ok() => out.write_all(text),
        _ => put_string(out, text),
    }
}

/// Writes a fact about the whole heap as the value that its text parses as, which is how reli outputs the texts of its
/// database. Lists are written without the blanks that the text may have.
pub(super) fn put_fact(out: &mut impl Write, text: &[u8]) -> io::Result<()> {
    match text {
        b"true" | b"false" => out.write_all(text),
        [b'[' | b'{', ..] => match serde_json::from_slice::<serde_json::Value>(text) {
            Ok(list) => out.write_all(list.to_string().as_bytes()),
            Err(_) => put_string(out, text),
        },
        _ => put_value(out, text, ValueKind::Float),
    }
}

/// Whether `text` is a number in JSON.
pub(crate) fn is_number(text: &[u8]) -> bool {
    let digits = |text: &mut &[u8]| {
        let count = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
        *text = text.get(count..).unwrap_or_default();
        count
    };
    let mut rest = text.strip_prefix(b"-").unwrap_or(text);
    let starts_with_zero = rest.starts_with(b"0");
    let whole = digits(&mut rest);
    if whole == 0 || (starts_with_zero && whole > 1) {
        return false;
    }
    if let Some(fraction) = rest.strip_prefix(b".") {
        rest = fraction;
        if digits(&mut rest) == 0 {
            return false;
        }
    }
    if let Some(exponent) = rest.strip_prefix(b"e").or_else(|| rest.strip_prefix(b"E")) {
        rest = exponent.strip_prefix(b"+").or_else(|| exponent.strip_prefix(b"-")).unwrap_or(exponent);
        if digits(&mut rest) == 0 {
            return false;
        }
    }
    rest.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expected values are the output of PHP 8.2.
    #[test]
    fn strings_are_escaped_as_php_does() {
        let php: [(&[u8], &str); 4] = [
            ("a/b\u{e9}\u{2028}\x7f".as_bytes(), "\"a\\/b\\u00e9\\u2028\x7f\""),
            ("\x01\"\\\u{1F600}<>&'".as_bytes(), "\"\\u0001\\\"\\\\\\ud83d\\ude00<>&'\""),
            (b"\xff", "\"\\ufffd\""),
            (b"\x08\x0c\n\r\t", "\"\\b\\f\\n\\r\\t\""),
        ];
        for (text, expected) in php {
            let mut out = Vec::new();
            put_string(&mut out, text).unwrap();
            assert_eq!(String::from_utf8(out).unwrap(), expected);
        }
    }

    #[test]
    fn only_json_numbers_are_accepted() {
        for number in ["0", "-0", "12", "1.5", "1.0e+17", "2E-3", "-7"] {
            assert!(is_number(number.as_bytes()), "{number}");
        }
        for text in ["", "-", "01", "1.", ".5", "1e", "0x1", "1 ", "nan", "+1"] {
            assert!(!is_number(text.as_bytes()), "{text}");
        }
    }
}
