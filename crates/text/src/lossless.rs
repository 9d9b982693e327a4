//! Bytes as text that every database and column accepts, and back.
//!
//! PHP's strings and names are bytes; a database's text is UTF-8 without NUL. A byte that such text cannot contain is
//! written as the replacement character U+FFFD and the byte's two hexadecimal digits: `caf\xe9` becomes `caf\u{fffd}e9`. The
//! replacement character itself is written as its three bytes, so that the way back is unambiguous. All other text is
//! unchanged.

use std::borrow::Cow;

const ESCAPE: char = char::REPLACEMENT_CHARACTER;

/// Escapes `bytes` as text.
///
/// # Examples
///
/// ```
/// use borehole_text::lossless::{escape, unescape};
///
/// assert_eq!(escape(b"App\\Caf\xc3\xa9"), "App\\Café");
/// assert_eq!(escape(b"caf\xe9\0"), "caf\u{fffd}e9\u{fffd}00");
/// assert_eq!(*unescape("caf\u{fffd}e9\u{fffd}00"), *b"caf\xe9\0");
/// ```
#[must_use]
pub fn escape(bytes: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(bytes) {
        Ok(text) if !text.contains(['\0', ESCAPE]) => Cow::Borrowed(text),
        _ => Cow::Owned(escaped(bytes)),
    }
}

fn escaped(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() + 16);
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            match character {
                '\0' => push_escaped(&mut text, 0),
                ESCAPE => {
                    character.encode_utf8(&mut [0; 4]).bytes().for_each(|byte| push_escaped(&mut text, byte));
                }
                other => text.push(other),
            }
        }
        chunk.invalid().iter().for_each(|&byte| push_escaped(&mut text, byte));
    }
    text
}

fn push_escaped(text: &mut String, byte: u8) {
    text.push(ESCAPE);
    text.extend([byte >> 4, byte & 15].map(|digit| char::from_digit(digit.into(), 16).expect("below 16")));
}

/// The bytes that [`escape`] turned into `text`. A replacement character without two digits is taken literally.
#[must_use]
pub fn unescape(text: &str) -> Cow<'_, [u8]> {
    if !text.contains(ESCAPE) {
        return Cow::Borrowed(text.as_bytes());
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(ESCAPE) {
        bytes.extend_from_slice(&rest.as_bytes()[..at]);
        rest = &rest[at + ESCAPE.len_utf8()..];
        match rest.get(..2).and_then(hex_byte) {
            Some(byte) => {
                bytes.push(byte);
                rest = &rest[2..];
            }
            None => bytes.extend_from_slice("\u{fffd}".as_bytes()),
        }
    }
    bytes.extend_from_slice(rest.as_bytes());
    Cow::Owned(bytes)
}

fn hex_byte(digits: &str) -> Option<u8> {
    let is_hex = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    is_hex.then(|| u8::from_str_radix(digits, 16).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_comes_back_beside_every_other() {
        for first in 0..=255 {
            for second in 0..=255 {
                let bytes = [b'a', first, second, b'0', 0xef, 0xbf, 0xbd];
                let text = escape(&bytes);
                assert!(!text.contains('\0'));
                assert_eq!(*unescape(&text), bytes, "{text}");
            }
        }
    }

    #[test]
    fn plain_text_is_not_copied() {
        assert!(matches!(escape("Größe".as_bytes()), Cow::Borrowed("Größe")));
        assert!(matches!(unescape("a\\b"), Cow::Borrowed(b"a\\b")));
        assert_eq!(*unescape("\u{fffd}zz"), *"\u{fffd}zz".as_bytes());
    }
}
