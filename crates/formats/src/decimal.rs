//! Decimal numbers, written several times faster than by the standard library's formatter; a profile is mostly numbers.

/// Room for the digits of 2⁶⁴ − 1, in pairs.
const MAX_DIGITS: usize = 20;

/// The two decimal digits of each number below 100.
const PAIRS: [[u8; 2]; 100] = {
    let mut pairs = [[b'0'; 2]; 100];
    let mut row = 0;
    let (mut tens, mut ones) = (b'0', b'0');
    while row < pairs.len() {
        pairs[row] = [tens, ones];
        ones += 1;
        if ones > b'9' {
            (tens, ones) = (tens + 1, b'0');
        }
        row += 1;
    }
    pairs
};

/// Appends `value` in decimal.
#[inline]
pub(crate) fn put_decimal(out: &mut Vec<u8>, mut value: u64) {
    let mut buffer = [0; MAX_DIGITS];
    let mut start = MAX_DIGITS;
    while value >= 100 {
        let pair = usize::from((value % 100).to_le_bytes()[0]);
        value /= 100;
        start -= 2;
        buffer[start..start + 2].copy_from_slice(&PAIRS[pair]);
    }
    let pair = PAIRS[usize::from(value.to_le_bytes()[0])];
    start -= 2;
    buffer[start..start + 2].copy_from_slice(&pair);
    start += usize::from(value < 10);
    out.extend_from_slice(&buffer[start..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_decimal() {
        let mut out = Vec::new();
        for value in [0, 9, 10, 99, 100, 12_345, u64::MAX] {
            put_decimal(&mut out, value);
            out.push(b' ');
        }
        assert_eq!(out, b"0 9 10 99 100 12345 18446744073709551615 ");
    }
}
