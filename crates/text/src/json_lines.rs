//! Writes JSON, line by line, into one buffer.
//!
//! A sample line costs some tens of nanoseconds: keys are copied, digits are written in place, and nothing is allocated
//! once the buffer has grown. The last byte written decides whether a comma is due, so the writer has no stack of open
//! objects and no state to get wrong.

use crate::digits::put_decimal;

/// Builds lines of JSON in a reused buffer.
///
/// Shape: calls follow the JSON: [`begin_object`](Self::begin_object), then a [`key`](Self::key) and a value each,
/// [`end_object`](Self::end_object), [`end_line`](Self::end_line). The writer places commas; the caller must match the
/// brackets.
///
/// # Examples
///
/// ```
/// use borehole_text::LineWriter;
///
/// let mut line = LineWriter::default();
/// line.begin_object();
/// line.key("name");
/// line.string(b"App\\Db");
/// line.key("ids");
/// line.begin_array();
/// line.integer(-1);
/// line.unsigned(u64::MAX);
/// line.end_array();
/// line.key("raw");
/// line.string(b"\xff\x00");
/// line.end_object();
/// line.end_line();
/// let expected = r#"{"name":"App\\Db","ids":[-1,18446744073709551615],"raw":{"hex":"ff00"}}"#;
/// assert_eq!(line.bytes(), [expected.as_bytes(), b"\n"].concat());
/// ```
#[derive(Clone, Debug, Default)]
pub struct LineWriter {
    bytes: Vec<u8>,
}

impl LineWriter {
    /// The bytes written since the last [`clear`](Self::clear).
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Removes the written bytes and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
    }

    /// The written bytes except the last one, which determines what follows it, and removes them: for lines that are too long to
    /// be held.
    pub fn take_all_but_last(&mut self) -> impl AsRef<[u8]> + '_ {
        let all_but_last = self.bytes.len().saturating_sub(1);
        self.bytes.drain(..all_but_last)
    }

    /// Opens an object.
    #[inline]
    pub fn begin_object(&mut self) {
        self.separate();
        self.bytes.push(b'{');
    }

    /// Closes an object.
    #[inline]
    pub fn end_object(&mut self) {
        self.bytes.push(b'}');
    }

    /// Opens an array.
    #[inline]
    pub fn begin_array(&mut self) {
        self.separate();
        self.bytes.push(b'[');
    }

    /// Closes an array.
    #[inline]
    pub fn end_array(&mut self) {
        self.bytes.push(b']');
    }

    /// Ends the line.
    #[inline]
    pub fn end_line(&mut self) {
        self.bytes.push(b'\n');
    }

    /// Writes the key of the next value. It is copied unchanged: a plain word without characters to escape.
    #[inline]
    pub fn key(&mut self, key: &str) {
        debug_assert!(key.bytes().all(|byte| !is_escaped(byte)));
        self.separate();
        self.bytes.push(b'"');
        self.bytes.extend_from_slice(key.as_bytes());
        self.bytes.extend_from_slice(b"\":");
    }

    /// Writes a piece of JSON unchanged, commas included: for parts that are equal in a million lines.
    #[inline]
    pub fn raw(&mut self, json: &str) {
        self.bytes.extend_from_slice(json.as_bytes());
    }

    /// Writes a string: as JSON text if it is UTF-8, otherwise as `{"hex":"…"}`.
    pub fn string(&mut self, string: &[u8]) {
        match std::str::from_utf8(string) {
            Ok(text) => self.text(text),
            Err(_) => self.hex("hex", string),
        }
    }

    /// Writes text: quotes, backslashes and control characters are escaped, everything else is unchanged.
    pub fn text(&mut self, text: &str) {
        self.separate();
        self.bytes.push(b'"');
        let mut rest = text.as_bytes();
        while let Some(before) = rest.iter().position(|&byte| is_escaped(byte)) {
            self.bytes.extend_from_slice(&rest[..before]);
            rest = self.escape(&rest[before..]);
        }
        self.bytes.extend_from_slice(rest);
        self.bytes.push(b'"');
    }

    /// Writes bytes as an object with one key: `{"key":"00ff"}`, in lower-case digits.
    pub fn hex(&mut self, key: &str, bytes: &[u8]) {
        self.begin_object();
        self.key(key);
        self.bytes.push(b'"');
        self.bytes.reserve(bytes.len().saturating_mul(2));
        for &byte in bytes {
            self.hex_digits(byte);
        }
        self.bytes.push(b'"');
        self.end_object();
    }

    /// Writes a signed integer, all digits.
    #[inline]
    pub fn integer(&mut self, value: i64) {
        self.separate();
        if value < 0 {
            self.bytes.push(b'-');
        }
        put_decimal(&mut self.bytes, value.unsigned_abs());
    }

    /// Writes an unsigned integer, all digits.
    #[inline]
    pub fn unsigned(&mut self, value: u64) {
        self.separate();
        put_decimal(&mut self.bytes, value);
    }

    /// Writes a floating-point number in the fewest digits that restore its bits. Values that JSON lacks are
    /// `{"f64":"NaN"}`, `{"f64":"Infinity"}` or `{"f64":"-Infinity"}`.
    pub fn float(&mut self, value: f64) {
        use std::io::Write as _;
        let name = match value {
            _ if value.is_nan() => "NaN",
            f64::INFINITY => "Infinity",
            f64::NEG_INFINITY => "-Infinity",
            _ => {
                self.separate();
                return write!(self.bytes, "{value:?}").expect("a Vec takes every write");
            }
        };
        self.begin_object();
        self.key("f64");
        self.text(name);
        self.end_object();
    }

    /// Writes `true` or `false`.
    pub fn boolean(&mut self, value: bool) {
        self.separate();
        self.bytes.extend_from_slice(if value { b"true" } else { b"false" });
    }

    /// Writes `null`.
    pub fn null(&mut self) {
        self.separate();
        self.bytes.extend_from_slice(b"null");
    }

    /// Writes a comma, unless the next value is the first of its object, array or line, or follows a key.
    #[inline]
    fn separate(&mut self) {
        if !matches!(self.bytes.last(), None | Some(b'{' | b'[' | b':' | b'\n')) {
            self.bytes.push(b',');
        }
    }

    /// Writes the first character of `text`, and returns the rest.
    #[cold]
    fn escape<'t>(&mut self, text: &'t [u8]) -> &'t [u8] {
        let (short, rest) = match *text {
            [byte @ (b'"' | b'\\'), ref rest @ ..] => (byte, rest),
            [b'\n', ref rest @ ..] => (b'n', rest),
            [b'\r', ref rest @ ..] => (b'r', rest),
            [b'\t', ref rest @ ..] => (b't', rest),
            [FIRST_OF_CONTROL, byte @ 0x80..=0x9f, ref rest @ ..] | [byte, ref rest @ ..]
                if byte != FIRST_OF_CONTROL =>
            {
                self.bytes.extend_from_slice(b"\\u00");
                self.hex_digits(byte);
                return rest;
            }
            [byte, ref rest @ ..] => {
                self.bytes.push(byte);
                return rest;
            }
            [] => return text,
        };
        self.bytes.extend_from_slice(&[b'\\', short]);
        rest
    }

    fn hex_digits(&mut self, byte: u8) {
        let [high, low] = [byte >> 4, byte & 15].map(|digit| HEX[usize::from(digit)]);
        self.bytes.extend_from_slice(&[high, low]);
    }
}

const HEX: &[u8; 16] = b"0123456789abcdef";

/// The first byte of control characters above ASCII, and of others.
const FIRST_OF_CONTROL: u8 = 0xc2;

/// Whether a byte may have to be escaped in a JSON string.
const fn is_escaped(byte: u8) -> bool {
    matches!(byte, 0..0x20 | b'"' | b'\\' | 0x7f | FIRST_OF_CONTROL)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::Value;

    fn written(write: impl FnOnce(&mut LineWriter)) -> String {
        let mut line = LineWriter::default();
        write(&mut line);
        String::from_utf8(line.bytes).unwrap()
    }

    #[test]
    fn every_character_below_256_survives_a_foreign_parser() {
        for code in 0..=255_u32 {
            let text = format!("a{}z", char::from_u32(code).unwrap());
            let json = written(|line| line.string(text.as_bytes()));
            assert_eq!(serde_json::from_str::<Value>(&json).unwrap(), Value::from(text.as_str()), "{json}");
        }
        assert_eq!(written(|line| line.text("\u{1}\u{1f}\"\\\n\r\té")), r#""\u0001\u001f\"\\\n\r\té""#);
        assert_eq!(
            written(|line| line.text("\u{7f}\u{80}\u{9f}\u{a0}¿")),
            "\"\\u007f\\u0080\\u009f\u{a0}¿\""
        );
    }

    #[test]
    fn bytes_that_are_not_text_are_hexadecimal() {
        assert_eq!(written(|line| line.string(b"a\xffz")), r#"{"hex":"61ff7a"}"#);
        assert_eq!(written(|line| line.hex("bytes", b"")), r#"{"bytes":""}"#);
    }

    #[test]
    fn integers_are_exact_at_every_length() {
        for exponent in 0..20 {
            let power = 10_u64.pow(exponent);
            for value in [power - 1, power, power + 1] {
                assert_eq!(written(|line| line.unsigned(value)), value.to_string());
            }
        }
        for value in [i64::MIN, i64::MIN + 1, -10, -1, 0, 9, i64::MAX] {
            assert_eq!(written(|line| line.integer(value)), value.to_string());
        }
        assert_eq!(written(|line| line.unsigned(u64::MAX)), u64::MAX.to_string());
    }

    #[test]
    fn floats_that_json_lacks_are_named() {
        let floats = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY];
        assert_eq!(
            floats.map(|value| written(|line| line.float(value))),
            [r#"{"f64":"NaN"}"#, r#"{"f64":"Infinity"}"#, r#"{"f64":"-Infinity"}"#]
        );
    }

    #[test]
    fn commas_stand_between_values_and_nowhere_else() {
        let json = written(|line| {
            line.begin_array();
            line.begin_object();
            line.end_object();
            line.begin_object();
            line.key("a");
            line.begin_array();
            line.end_array();
            line.key("b");
            line.null();
            line.end_object();
            line.boolean(true);
            line.text("[");
            line.text("{:");
            line.end_array();
            line.end_line();
            line.boolean(false);
        });
        assert_eq!(json, "[{},{\"a\":[],\"b\":null},true,\"[\",\"{:\"]\nfalse");
    }

    proptest! {
        #[test]
        fn finite_floats_read_back_to_the_same_bits(bits: u64) {
            let value = f64::from_bits(bits);
            prop_assume!(value.is_finite());
            let json = written(|line| line.float(value));
            prop_assert_eq!(json.parse::<f64>().unwrap().to_bits(), bits, "{}", json);
            prop_assert!(serde_json::from_str::<Value>(&json).unwrap().is_f64());
        }

        #[test]
        fn any_text_survives_a_foreign_parser(text: String) {
            let json = written(|line| line.string(text.as_bytes()));
            prop_assert_eq!(serde_json::from_str::<String>(&json).unwrap(), text);
        }
    }
}
