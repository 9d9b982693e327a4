//! Frequent values of this format, written to the stream of JSON.

use std::io::{self, Write};

use crate::json_stream::JsonStream;

/// The number of repetitions of a value written at once.
const REPEATED_AT_ONCE: u64 = 1 << 10;

impl<W: Write> JsonStream<W> {
    /// Writes a number, or `null`.
    pub(super) fn optional(&mut self, value: Option<u64>) -> &mut Self {
        match value {
            Some(value) => self.number(value),
            None => self.raw("null"),
        }
    }

    /// Writes nanoseconds as milliseconds, exactly.
    #[inline]
    pub(super) fn milliseconds(&mut self, ns: u64) -> &mut Self {
        self.number(ns / 1_000_000);
        let mut rest = ns % 1_000_000;
        if rest == 0 {
            return self;
        }
        let mut digits = *b".000000";
        let mut length = 1;
        for (index, digit) in digits.iter_mut().enumerate().skip(1).rev() {
            *digit += (rest % 10).to_le_bytes()[0];
            rest /= 10;
            if length == 1 && *digit != b'0' {
                length = index + 1;
            }
        }
        self.bytes(&digits[..length])
    }

    /// Writes the elements of a list of `count` equal values.
    pub(super) fn repeated(&mut self, value: &str, count: u64) -> io::Result<()> {
        let Some(mut left) = count.checked_sub(1) else { return Ok(()) };
        self.raw(value);
        let next = format!(",{value}");
        let many = next.repeat(usize::try_from(left.min(REPEATED_AT_ONCE)).unwrap_or_default());
        while left > 0 {
            let now = left.min(REPEATED_AT_ONCE);
            self.raw(&many[..next.len() * usize::try_from(now).unwrap_or_default()]).spill()?;
            left -= now;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn milliseconds_are_exact_and_short() {
        let mut out = Vec::new();
        let mut output = JsonStream::new(&mut out);
        for ns in [0, 1, 10_000, 862_000, 900_000, 1_000_000, 1_002_030_000, u64::MAX] {
            output.milliseconds(ns).raw(" ");
        }
        output.finish().unwrap();
        assert_eq!(out, b"0 0.000001 0.01 0.862 0.9 1 1002.03 18446744073709.551615 ");
    }

    #[test]
    fn equal_values_are_as_many_as_asked_for() {
        for count in [0, 1, 2, 1024, 1025, 1026, 5000] {
            let mut out = Vec::new();
            let mut output = JsonStream::new(&mut out);
            output.repeated("null", count).unwrap();
            output.finish().unwrap();
            let text = String::from_utf8(out).unwrap();
            assert_eq!(text.matches("null").count() as u64, count);
            assert_eq!(text, vec!["null"; text.matches("null").count()].join(","));
        }
    }
}
