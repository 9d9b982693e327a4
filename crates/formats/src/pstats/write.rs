//! Statistics in Python's marshal format: a dictionary of functions.
//!
//! Source: CPython 3.15, `Python/marshal.c`: the codes of types, and integers in digits of 15 bits.

use std::io::{self, Write};

use super::SAMPLED;
use super::stats::{FunctionLine, Stats};

/// Writes all statistics.
pub(super) fn write(stats: &Stats, output: &mut impl Write) -> io::Result<()> {
    output.write_all(b"{")?;
    for (number, (function, sum, time)) in stats.rows().enumerate() {
        put_function(stats, function, output)?;
        put_tuple(5, output)?;
        put_integer(sum.self_samples, output)?;
        put_integer(sum.total_samples, output)?;
        put_float(time.self_s, output)?;
        put_float(time.total_s, output)?;
        output.write_all(b"{")?;
        for call in stats.calls_of(number) {
            put_function(stats, stats.caller(call), output)?;
            put_integer(call.count, output)?;
        }
        output.write_all(b"0")?;
    }
    put_tuple(1, output)?;
    put_text(SAMPLED, output)?;
    output.write_all(b"T0")
}

fn put_function(stats: &Stats, function: &FunctionLine, output: &mut impl Write) -> io::Result<()> {
    put_tuple(3, output)?;
    put_text(stats.name(function.file), output)?;
    put_signed(function.line, output)?;
    put_text(stats.name(function.name), output)
}

/// Writes the head of a tuple of `len` objects, which follow.
fn put_tuple(len: u8, output: &mut impl Write) -> io::Result<()> {
    output.write_all(&[b')', len])
}

fn put_text(text: &str, output: &mut impl Write) -> io::Result<()> {
    let Ok(len) = i32::try_from(text.len()) else {
        return Err(io::Error::other("name too large: expected less than 2^31 bytes"));
    };
    output.write_all(b"u")?;
    output.write_all(&len.to_le_bytes())?;
    output.write_all(text.as_bytes())
}

fn put_float(value: f64, output: &mut impl Write) -> io::Result<()> {
    output.write_all(b"g")?;
    output.write_all(&value.to_le_bytes())
}

fn put_integer(value: u64, output: &mut impl Write) -> io::Result<()> {
    match i64::try_from(value) {
        Ok(value) => put_signed(value, output),
        Err(_) => put_digits(value, 1, output),
    }
}

fn put_signed(value: i64, output: &mut impl Write) -> io::Result<()> {
    match i32::try_from(value) {
        Ok(value) => {
            output.write_all(b"i")?;
            output.write_all(&value.to_le_bytes())
        }
        Err(_) => put_digits(value.unsigned_abs(), value.signum(), output),
    }
}

/// Writes an integer beyond 32 bits: the number of digits, negative for a negative one, and the digits.
fn put_digits(mut rest: u64, sign: i64, output: &mut impl Write) -> io::Result<()> {
    const DIGIT: u64 = 0x7fff;
    let mut digits = Vec::new();
    let mut count = 0_i32;
    while rest > 0 {
        let digit = u16::try_from(rest & DIGIT).expect("a digit has 15 bits");
        digits.extend(digit.to_le_bytes());
        count += 1;
        rest >>= 15;
    }
    output.write_all(b"l")?;
    output.write_all(&(if sign < 0 { -count } else { count }).to_le_bytes())?;
    output.write_all(&digits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_as_python_writes_them() {
        let written = |value: u64| {
            let mut out = Vec::new();
            put_integer(value, &mut out).unwrap();
            out
        };
        // The output of Python's `marshal.dumps(value, 2)`.
        assert_eq!(written(5), b"i\x05\0\0\0");
        assert_eq!(written(1 << 31), b"l\x03\0\0\0\0\0\0\0\x02\0");
        assert_eq!(written(u64::MAX), b"l\x05\0\0\0\xff\x7f\xff\x7f\xff\x7f\xff\x7f\x0f\0");
        let mut out = Vec::new();
        put_signed(-(1 << 40), &mut out).unwrap();
        assert_eq!(out, b"l\xfd\xff\xff\xff\0\0\0\0\0\x04");
    }
}
