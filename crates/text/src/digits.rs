//! Decimal digits, written several times faster than by the standard library's formatter; profiles and heaps are mostly numbers.

/// An integer in digits, without an allocation.
#[derive(Clone, Copy, Debug)]
pub struct IntegerDigits {
    bytes: [u8; 20],
    start: usize,
}

/// The two decimal digits of each number below 100.
const PAIRS: [[u8; 2]; 100] = {
    let mut pairs = [[b'0'; 2]; 100];
    let mut pair = 0_u8;
    while pair < 100 {
        pairs[pair as usize] = [b'0' + pair / 10, b'0' + pair % 10];
        pair += 1;
    }
    pairs
};

impl IntegerDigits {
    /// The digits of a signed integer.
    #[must_use]
    #[inline]
    pub fn of(number: i64) -> Self {
        let mut digits = Self::of_unsigned(number.unsigned_abs());
        if number < 0 {
            digits.start -= 1;
            digits.bytes[digits.start] = b'-';
        }
        digits
    }

    /// The digits of an unsigned integer.
    #[must_use]
    #[inline]
    pub fn of_unsigned(mut number: u64) -> Self {
        let mut bytes = [0; 20];
        let mut start = bytes.len();
        // Division is the slowest step: two digits each.
        while number >= 100 {
            start -= 2;
            bytes[start..start + 2].copy_from_slice(&PAIRS[(number % 100) as usize]);
            number /= 100;
        }
        start -= 2;
        bytes[start..start + 2].copy_from_slice(&PAIRS[(number % 100) as usize]);
        start += usize::from(number < 10);
        Self { bytes, start }
    }

    /// The digits as ASCII, after a minus sign if the number is negative.
    #[must_use]
    #[inline]
    pub fn text(&self) -> &[u8] {
        &self.bytes[self.start..]
    }
}

/// Appends `value` in decimal.
#[inline]
pub fn put_decimal(out: &mut Vec<u8>, value: u64) {
    out.extend_from_slice(IntegerDigits::of_unsigned(value).text());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_written_in_full() {
        for exponent in 0..20 {
            let power = 10_u64.pow(exponent);
            for value in [power - 1, power, power + 1, u64::MAX] {
                assert_eq!(IntegerDigits::of_unsigned(value).text(), value.to_string().as_bytes());
            }
        }
        for number in [0, 1, -1, 9, -10, 65_536, i64::MAX, i64::MIN] {
            assert_eq!(IntegerDigits::of(number).text(), number.to_string().as_bytes());
        }
        let mut out = b"x".to_vec();
        put_decimal(&mut out, 107);
        assert_eq!(out, b"x107");
    }
}
