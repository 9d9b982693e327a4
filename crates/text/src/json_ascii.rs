//! JSON strings in ASCII, as several programs write them.

use std::io::{self, Write};

/// Writes `text` as a JSON string in ASCII. Each maximal invalid part of UTF-8 becomes U+FFFD. Bytes of ASCII are escaped unless
/// `is_plain`, which must not hold for quotes, backslashes and control characters.
///
/// # Errors
/// The errors of writing to `out`.
///
/// # Examples
///
/// ```
/// let mut out = Vec::new();
/// let is_plain = |byte| matches!(byte, b' '..=b'~') && !matches!(byte, b'"' | b'\\');
/// borehole_text::put_ascii_json(&mut out, b"a/\"\xc3\xa9\xff\n", is_plain).unwrap();
/// assert_eq!(out, br#""a/\"\u00e9\ufffd\n""#);
/// ```
#[inline]
pub fn put_ascii_json(
    out: &mut impl Write,
    text: &[u8],
    is_plain: impl Fn(u8) -> bool + Copy,
) -> io::Result<()> {
    out.write_all(b"\"")?;
    // Most names are plain.
    if text.iter().all(|&byte| is_plain(byte)) {
        out.write_all(text)?;
        return out.write_all(b"\"");
    }
    for chunk in text.utf8_chunks() {
        put_valid(out, chunk.valid(), is_plain)?;
        if !chunk.invalid().is_empty() {
            out.write_all(b"\\ufffd")?;
        }
    }
    out.write_all(b"\"")
}

fn put_valid(out: &mut impl Write, text: &str, is_plain: impl Fn(u8) -> bool) -> io::Result<()> {
    let bytes = text.as_bytes();
    let mut written = 0;
    for (at, character) in text.char_indices() {
        if character.is_ascii() && u8::try_from(character).is_ok_and(&is_plain) {
            continue;
        }
        out.write_all(bytes.get(written..at).unwrap_or_default())?;
        put_escaped(out, character)?;
        written = at + character.len_utf8();
    }
    out.write_all(bytes.get(written..).unwrap_or_default())
}

fn put_escaped(out: &mut impl Write, character: char) -> io::Result<()> {
    let short = match character {
        '"' => "\\\"",
        '\\' => "\\\\",
        '/' => "\\/",
        '\x08' => "\\b",
        '\x0c' => "\\f",
        '\n' => "\\n",
        '\r' => "\\r",
        '\t' => "\\t",
        _ => {
            let mut units = [0; 2];
            return character
                .encode_utf16(&mut units)
                .iter()
                .try_for_each(|unit| write!(out, "\\u{unit:04x}"));
        }
    };
    out.write_all(short.as_bytes())
}
