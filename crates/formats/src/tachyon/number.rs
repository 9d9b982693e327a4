//! Varints as CPython reads them: up to ten bytes, however small the value; bits above the 64th are dropped.
//!
//! Source: CPython 3.15.2; `corrupt/varint_*.bin` of the corpus.

use borehole_wire::{Cursor, MAX_VARINT_BYTES, put_varint};

/// The reason why a number cannot be read, with its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NumberFault {
    /// The bytes end within it.
    Cut(borehole_wire::Error),
    /// It is longer than ten bytes.
    TooLong(u64),
    /// It does not fit 32 bits.
    TooLarge(u64),
}

impl NumberFault {
    pub(super) const fn offset(self) -> u64 {
        match self {
            Self::Cut(error) => error.offset(),
            Self::TooLong(offset) | Self::TooLarge(offset) => offset,
        }
    }

    pub(super) const fn message(self) -> &'static str {
        match self {
            Self::Cut(_) => "truncated: expected more bytes, found the end",
            Self::TooLong(_) => "invalid varint: expected at most 10 bytes, found more",
            Self::TooLarge(_) => "invalid varint: expected at most 32 bits, found more",
        }
    }
}

impl From<borehole_wire::Error> for NumberFault {
    fn from(error: borehole_wire::Error) -> Self {
        Self::Cut(error)
    }
}

/// Reads an unsigned varint.
#[inline]
pub(super) fn varint(cursor: &mut Cursor<'_>) -> Result<u64, NumberFault> {
    match cursor.peek() {
        Some(byte) if byte < 0x80 => Ok(u64::from(cursor.u8()?)),
        _ => long_varint(cursor),
    }
}

fn long_varint(cursor: &mut Cursor<'_>) -> Result<u64, NumberFault> {
    let start = cursor.offset();
    let mut within = Cursor::new(cursor.rest().get(..MAX_VARINT_BYTES).unwrap_or(cursor.rest()), start);
    match within.varint_wrapping() {
        Ok(value) => {
            cursor.bytes(usize::try_from(within.offset() - start).expect("ten bytes at most"))?;
            Ok(value)
        }
        Err(_) if within.rest().len() == MAX_VARINT_BYTES => Err(NumberFault::TooLong(start)),
        Err(error) => Err(NumberFault::Cut(error)),
    }
}

/// Reads an unsigned varint that fits 32 bits.
///
/// Records consist of these: numbers of frames usually take two or three bytes.
#[inline(always)]
pub(super) fn varint_u32(cursor: &mut Cursor<'_>) -> Result<u32, NumberFault> {
    let group = |byte: u8| u32::from(byte & 0x7f);
    let (value, length) = match *cursor.rest() {
        [one, ..] if one < 0x80 => (u32::from(one), 1),
        [low, high, ..] if high < 0x80 => (group(low) | group(high) << 7, 2),
        [low, middle, high, ..] if high < 0x80 => (group(low) | group(middle) << 7 | group(high) << 14, 3),
        _ => return long_varint_u32(cursor),
    };
    cursor.bytes(length)?;
    Ok(value)
}

#[cold]
fn long_varint_u32(cursor: &mut Cursor<'_>) -> Result<u32, NumberFault> {
    let start = cursor.offset();
    u32::try_from(long_varint(cursor)?).map_err(|_| NumberFault::TooLarge(start))
}

/// Reads a zigzag varint of 32 bits.
pub(super) fn varint_i32(cursor: &mut Cursor<'_>) -> Result<i32, NumberFault> {
    let folded = varint_u32(cursor)?;
    let magnitude = (folded >> 1).cast_signed();
    Ok(if folded & 1 == 0 { magnitude } else { !magnitude })
}

/// Appends a zigzag varint.
pub(super) fn put_varint_i32(out: &mut Vec<u8>, value: i32) {
    let folded = (value << 1) ^ (value >> 31);
    put_varint(out, u64::from(folded.cast_unsigned()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signed_numbers_round_trip_and_small_ones_are_short() {
        for (value, length) in [(0, 1), (-1, 1), (63, 1), (-64, 1), (64, 2), (i32::MAX, 5), (i32::MIN, 5)] {
            let mut bytes = Vec::new();
            put_varint_i32(&mut bytes, value);
            assert_eq!(bytes.len(), length, "{value}");
            assert_eq!(varint_i32(&mut Cursor::new(&bytes, 0)), Ok(value));
        }
    }

    #[test]
    fn numbers_of_32_bits_round_trip_at_every_length() {
        for bits in 0..32 {
            for value in
                [(1_u32 << bits) - 1, 1 << bits, 1 << bits | 1, u32::MAX >> bits, 0x5a5a_5a5a >> bits]
            {
                let mut bytes = Vec::new();
                put_varint(&mut bytes, value.into());
                let mut cursor = Cursor::new(&bytes, 0);
                assert_eq!((varint_u32(&mut cursor), cursor.rest()), (Ok(value), &b""[..]));
                assert_eq!(varint(&mut Cursor::new(&bytes, 0)), Ok(value.into()));
                let cut = varint_u32(&mut Cursor::new(&bytes[..bytes.len() - 1], 7));
                assert!(
                    matches!(cut, Err(NumberFault::Cut(error)) if error.offset() == 6 + bytes.len() as u64)
                );
            }
        }
        let mut bytes = Vec::new();
        put_varint(&mut bytes, 1 << 32);
        assert_eq!(varint_u32(&mut Cursor::new(&bytes, 9)), Err(NumberFault::TooLarge(9)));
    }

    #[test]
    fn ten_bytes_are_read_and_eleven_are_not() {
        let padded = |length: usize| [vec![0x80; length - 1], vec![0]].concat();
        let mut cursor = Cursor::new(b"\x80\x80\x00x", 0);
        assert_eq!(varint(&mut cursor), Ok(0));
        assert_eq!(cursor.rest(), b"x");
        assert_eq!(varint(&mut Cursor::new(&padded(10), 0)), Ok(0));
        assert_eq!(varint(&mut Cursor::new(&padded(11), 5)), Err(NumberFault::TooLong(5)));
        let wide = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f];
        assert_eq!(varint(&mut Cursor::new(&wide, 0)), Ok(u64::MAX));
        assert_eq!(varint_u32(&mut Cursor::new(&wide, 3)), Err(NumberFault::TooLarge(3)));
        assert!(matches!(varint(&mut Cursor::new(&[0x80; 3], 0)), Err(NumberFault::Cut(_))));
    }
}
