//! JSON to a stream, piece by piece.

use std::borrow::Cow;
use std::io::{self, Write};

/// What to do with bytes in names that are not UTF-8, which JSON cannot hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Utf8Errors {
    /// Leave them out.
    #[default]
    Ignore,
    /// Write U+FFFD for them.
    Substitute,
    /// Fail.
    Fail,
}

impl Utf8Errors {
    /// `bytes` as text.
    ///
    /// # Errors
    /// When they are not UTF-8 and that is to fail.
    pub(super) fn text(self, bytes: &[u8]) -> io::Result<Cow<'_, str>> {
        let error = match std::str::from_utf8(bytes) {
            Ok(text) => return Ok(Cow::Borrowed(text)),
            Err(error) => error,
        };
        match self {
            Self::Ignore => Ok(bytes.utf8_chunks().map(|chunk| chunk.valid()).collect::<String>().into()),
            Self::Substitute => Ok(String::from_utf8_lossy(bytes)),
            Self::Fail => {
                let name = String::from_utf8_lossy(bytes);
                let at = error.valid_up_to();
                let message = format!("invalid name: expected UTF-8, found another byte at {at} of {name:?}");
                Err(io::Error::new(io::ErrorKind::InvalidData, message))
            }
        }
    }
}

/// The stream of a document.
#[derive(Debug)]
pub(super) struct Output<W> {
    buffer: Vec<u8>,
    stream: W,
}

impl<W: Write> Output<W> {
    /// Bytes that are collected before the stream sees them.
    const BUFFER_BYTES: usize = 64 << 10;

    pub(super) const fn new(stream: W) -> Self {
        Self { buffer: Vec::new(), stream }
    }

    /// JSON as it stands.
    #[inline]
    pub(super) fn raw(&mut self, json: &str) -> &mut Self {
        self.buffer.extend_from_slice(json.as_bytes());
        self
    }

    #[inline]
    pub(super) fn number(&mut self, value: u64) -> &mut Self {
        put_decimal(&mut self.buffer, value);
        self
    }

    pub(super) fn signed(&mut self, value: i128) -> &mut Self {
        self.raw(&value.to_string())
    }

    pub(super) fn string(&mut self, text: &str) -> &mut Self {
        serde_json::to_writer(&mut self.buffer, text).expect("a string is JSON, and a vector takes it");
        self
    }

    /// Hands over what has been collected, if that is enough to be worth it.
    #[inline]
    pub(super) fn spill(&mut self) -> io::Result<()> {
        if self.buffer.len() < Self::BUFFER_BYTES { Ok(()) } else { self.hand_over() }
    }

    pub(super) fn finish(&mut self) -> io::Result<()> {
        self.hand_over()?;
        self.stream.flush()
    }

    fn hand_over(&mut self) -> io::Result<()> {
        self.stream.write_all(&self.buffer)?;
        self.buffer.clear();
        Ok(())
    }
}

/// Appends `value` in decimal. The formatter of the standard library takes five times as long, and a profile
/// is mostly numbers.
#[inline]
fn put_decimal(out: &mut Vec<u8>, mut value: u64) {
    let mut digits = [0_u8; 20];
    let mut start = digits.len();
    loop {
        start -= 1;
        digits[start] = b'0' + (value % 10).to_le_bytes()[0];
        value /= 10;
        if value == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[start..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_decimal() {
        let mut out = Vec::new();
        for value in [0, 9, 10, 12_345, u64::MAX] {
            put_decimal(&mut out, value);
            out.push(b' ');
        }
        assert_eq!(out, b"0 9 10 12345 18446744073709551615 ");
    }

    #[test]
    fn bytes_outside_utf8_are_left_out_replaced_or_refused() {
        let bytes = b"caf\xe9 \xf0\x9f";
        assert_eq!(Utf8Errors::Ignore.text(bytes).unwrap(), "caf ");
        assert_eq!(Utf8Errors::Substitute.text(bytes).unwrap(), "caf\u{fffd} \u{fffd}");
        let error = Utf8Errors::Fail.text(bytes).unwrap_err();
        let text = "invalid name: expected UTF-8, found another byte at 3 of \"caf\u{fffd} \u{fffd}\"";
        assert_eq!(error.to_string(), text);
    }
}
