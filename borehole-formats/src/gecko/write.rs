//! JSON to a stream, piece by piece.

use std::io::{self, Write};

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
    pub(super) fn number(&mut self, mut value: u64) -> &mut Self {
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
        self.buffer.extend_from_slice(&digits[start..]);
        self
    }

    /// A number, or nothing.
    pub(super) fn optional(&mut self, value: Option<u64>) -> &mut Self {
        match value {
            Some(value) => self.number(value),
            None => self.raw("null"),
        }
    }

    /// Nanoseconds as milliseconds, exactly.
    #[inline]
    pub(super) fn milliseconds(&mut self, ns: u64) -> &mut Self {
        self.number(ns / 1_000_000);
        let mut rest = ns % 1_000_000;
        if rest > 0 {
            self.buffer.push(b'.');
        }
        let mut unit = 100_000;
        while rest > 0 {
            self.buffer.push(b'0' + (rest / unit).to_le_bytes()[0]);
            rest %= unit;
            unit /= 10;
        }
        self
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn milliseconds_are_exact_and_short() {
        let mut out = Vec::new();
        let mut output = Output::new(&mut out);
        for ns in [0, 1, 10_000, 862_000, 1_000_000, 1_002_030_000, u64::MAX] {
            output.milliseconds(ns).raw(" ");
        }
        output.finish().unwrap();
        assert_eq!(out, b"0 0.000001 0.01 0.862 1 1002.03 18446744073709.551615 ");
    }
}
