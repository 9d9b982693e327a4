//! What this format writes often, on the stream of JSON.

use std::io::Write;

use crate::json_stream::JsonStream;

const DIGITS: &str = "0123456789";

impl<W: Write> JsonStream<W> {
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
            self.raw(".");
        }
        let mut unit = 100_000;
        while rest > 0 {
            let digit = usize::from((rest / unit).to_le_bytes()[0]);
            self.raw(&DIGITS[digit..=digit]);
            rest %= unit;
            unit /= 10;
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn milliseconds_are_exact_and_short() {
        let mut out = Vec::new();
        let mut output = JsonStream::new(&mut out);
        for ns in [0, 1, 10_000, 862_000, 1_000_000, 1_002_030_000, u64::MAX] {
            output.milliseconds(ns).raw(" ");
        }
        output.finish().unwrap();
        assert_eq!(out, b"0 0.000001 0.01 0.862 1 1002.03 18446744073709.551615 ");
    }
}
