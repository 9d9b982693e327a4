//! A borrowing reader that reports where it failed.

use std::fmt;

/// A read position in a slice that knows the slice's offset in its file.
///
/// It is `Copy`: a decoder works on a copy, and the caller keeps the original if the decoder fails.
///
/// # Examples
///
/// ```
/// use borehole_wire::Cursor;
///
/// let mut cursor = Cursor::new(b"\x07\xac\x02tail", 0x40);
/// assert_eq!(cursor.u8()?, 7);
/// assert_eq!(cursor.varint()?, 300);
/// assert_eq!(cursor.offset(), 0x43);
/// let missing = cursor.bytes(6).unwrap_err();
/// assert_eq!(missing.to_string(), "truncated: 2 bytes missing at byte 0x43");
/// # Ok::<(), borehole_wire::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Cursor<'a> {
    rest: &'a [u8],
    end_offset: u64,
}

impl<'a> Cursor<'a> {
    /// Creates a cursor at the start of `bytes`, which are at `offset` in their file.
    #[inline]
    #[must_use]
    pub const fn new(bytes: &'a [u8], offset: u64) -> Self {
        Self { rest: bytes, end_offset: offset.saturating_add(bytes.len() as u64) }
    }

    /// The file offset of the next byte.
    #[inline]
    #[must_use]
    pub const fn offset(&self) -> u64 {
        self.end_offset.saturating_sub(self.rest.len() as u64)
    }

    /// The bytes not yet read.
    #[inline]
    #[must_use]
    pub const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Whether everything has been read.
    #[inline]
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The next byte, without consuming it; `None` at the end.
    #[inline]
    #[must_use]
    pub fn peek(&self) -> Option<u8> {
        self.rest.first().copied()
    }

    /// Reads one byte.
    ///
    /// # Errors
    /// Truncated at the end of the slice.
    #[inline]
    pub fn u8(&mut self) -> Result<u8, Error> {
        let (&byte, rest) = self.rest.split_first().ok_or_else(|| self.truncated(1))?;
        self.rest = rest;
        Ok(byte)
    }

    /// Reads `count` bytes, borrowed from the slice.
    ///
    /// # Errors
    /// Truncated if fewer are left; nothing is consumed in that case.
    #[inline]
    pub fn bytes(&mut self, count: usize) -> Result<&'a [u8], Error> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or_else(|| self.truncated(count))?;
        self.rest = rest;
        Ok(taken)
    }

    /// Reads `N` bytes as an array, for fixed-width numbers.
    ///
    /// # Errors
    /// Truncated if fewer are left; nothing is consumed in that case.
    #[inline]
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let (taken, rest) = self.rest.split_first_chunk::<N>().ok_or_else(|| self.truncated(N))?;
        self.rest = rest;
        Ok(*taken)
    }

    /// Reads a 16-bit little-endian number.
    ///
    /// # Errors
    /// Those of [`Cursor::array`].
    #[inline]
    pub fn u16_le(&mut self) -> Result<u16, Error> {
        self.array().map(u16::from_le_bytes)
    }

    /// Reads a 32-bit little-endian number.
    ///
    /// # Errors
    /// Those of [`Cursor::array`].
    #[inline]
    pub fn u32_le(&mut self) -> Result<u32, Error> {
        self.array().map(u32::from_le_bytes)
    }

    /// Reads a 64-bit little-endian number.
    ///
    /// # Errors
    /// Those of [`Cursor::array`].
    #[inline]
    pub fn u64_le(&mut self) -> Result<u64, Error> {
        self.array().map(u64::from_le_bytes)
    }

    /// Reads an unsigned varint of at most 64 bits.
    ///
    /// # Errors
    /// Truncated, or too large if the value needs more than 64 bits.
    #[inline]
    pub fn varint(&mut self) -> Result<u64, Error> {
        let (value, overflow, rest) = self.varint_groups()?;
        if overflow {
            return Err(Error { offset: self.offset(), kind: ErrorKind::VarintTooLarge });
        }
        self.rest = rest;
        Ok(value)
    }

    /// Reads an unsigned varint of any length. Bits above the 64th are dropped.
    ///
    /// # Errors
    /// Truncated.
    #[inline]
    pub fn varint_wrapping(&mut self) -> Result<u64, Error> {
        let (value, rest) = match *self.rest {
            [one, ref rest @ ..] if one < 0x80 => (u64::from(one), rest),
            [low, high, ref rest @ ..] if high < 0x80 => (u64::from(low & 0x7f) | u64::from(high) << 7, rest),
            _ => self.varint_groups().map(|(value, _, rest)| (value, rest))?,
        };
        self.rest = rest;
        Ok(value)
    }

    /// The value of a varint, whether bits above the 64th were set, and the remaining bytes. Takes `self` by value, so
    /// that a cursor whose short varints are read inline can stay in registers.
    fn varint_groups(self) -> Result<(u64, bool, &'a [u8]), Error> {
        let mut value = 0_u64;
        let mut overflow = false;
        let mut shift = 0_u32;
        for (index, &byte) in self.rest.iter().enumerate() {
            let group = u64::from(byte & 0x7f);
            if shift < 64 {
                value |= group << shift;
                overflow |= (group << shift) >> shift != group;
            } else {
                overflow |= group != 0;
            }
            shift = shift.saturating_add(7);
            if byte < 0x80 {
                return Ok((value, overflow, self.rest.get(index + 1..).unwrap_or_default()));
            }
        }
        Err(Error { offset: self.end_offset, kind: ErrorKind::Truncated { missing: 1 } })
    }

    #[cold]
    fn truncated(self, wanted: usize) -> Error {
        let missing = wanted.saturating_sub(self.rest.len());
        Error { offset: self.offset(), kind: ErrorKind::Truncated { missing } }
    }
}

/// A failed read and its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Error {
    offset: u64,
    kind: ErrorKind,
}

/// The kind of a failed read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The slice ended before the value did.
    Truncated {
        /// The least number of further bytes needed.
        missing: usize,
    },
    /// A varint holds more than 64 bits.
    VarintTooLarge,
}

impl Error {
    /// The file offset at which the read failed.
    #[must_use]
    pub const fn offset(&self) -> u64 {
        self.offset
    }

    /// The kind of failure.
    #[must_use]
    pub const fn kind(&self) -> ErrorKind {
        self.kind
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            ErrorKind::Truncated { missing } => write!(f, "truncated: {missing} bytes missing")?,
            ErrorKind::VarintTooLarge => {
                f.write_str("invalid varint: expected at most 64 bits, found more")?;
            }
        }
        write!(f, " at byte {:#x}", self.offset)
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{put_varint, put_varint_signed, varint_len};

    #[test]
    fn varints_round_trip_at_every_group_boundary() {
        for bits in 0..64 {
            for value in [(1_u64 << bits) - 1, 1 << bits, (1_u64 << bits) | 1] {
                let mut bytes = Vec::new();
                put_varint(&mut bytes, value);
                assert_eq!(bytes.len(), varint_len(value), "{value:#x}");
                assert_eq!(Cursor::new(&bytes, 0).varint(), Ok(value));
                assert_eq!(Cursor::new(&bytes, 0).varint_wrapping(), Ok(value));
            }
        }
    }

    #[test]
    fn negative_numbers_take_ten_bytes() {
        let mut bytes = Vec::new();
        put_varint_signed(&mut bytes, -1);
        assert_eq!(bytes, [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01]);
        assert_eq!(Cursor::new(&bytes, 0).varint().map(u64::cast_signed), Ok(-1));
    }

    #[test]
    fn padded_varints_are_read_and_bits_above_the_64th_are_dropped_only_when_asked() {
        let padded = [0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00];
        assert_eq!(Cursor::new(&padded, 0).varint(), Ok(0));
        let high = [0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x02];
        assert_eq!(Cursor::new(&high, 0).varint_wrapping(), Ok(0));
        let error = Cursor::new(&high, 9).varint().unwrap_err();
        assert_eq!((error.offset(), error.kind()), (9, ErrorKind::VarintTooLarge));
        // A bit in a group of its own, above all that fit.
        let beyond = [0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01];
        assert_eq!(Cursor::new(&beyond, 0).varint_wrapping(), Ok(0));
        assert_eq!(Cursor::new(&beyond, 0).varint().unwrap_err().kind(), ErrorKind::VarintTooLarge);
    }

    #[test]
    fn each_read_takes_its_own_bytes_and_no_more() {
        let bytes = [0x81, 0x01, 0x02, 0xff, 0xff, 0x01, 0x03, 0x04, 0x05];
        let mut cursor = Cursor::new(&bytes, 10);
        assert_eq!((cursor.varint(), cursor.offset()), (Ok(0x81), 12));
        assert_eq!((cursor.varint_wrapping(), cursor.offset()), (Ok(2), 13));
        assert_eq!((cursor.varint_wrapping(), cursor.offset()), (Ok(0x7fff), 16));
        assert_eq!((cursor.u8(), cursor.offset()), (Ok(3), 17));
        assert_eq!((cursor.bytes(2), cursor.offset()), (Ok(&[4, 5][..]), 19));
        assert!(cursor.is_empty());
        let error = cursor.u8().unwrap_err();
        assert_eq!((error.offset(), error.kind()), (19, ErrorKind::Truncated { missing: 1 }));
    }

    #[test]
    fn a_failed_read_consumes_nothing_and_states_its_position() {
        let mut cursor = Cursor::new(b"abc", 100);
        let error = cursor.u32_le().unwrap_err();
        assert_eq!((error.offset(), error.kind()), (100, ErrorKind::Truncated { missing: 1 }));
        assert_eq!(cursor.rest(), b"abc");
        assert_eq!(cursor.u16_le(), Ok(u16::from_le_bytes(*b"ab")));
        assert_eq!(cursor.offset(), 102);
        let error = Cursor::new(b"\x80\x80", 7).varint().unwrap_err();
        assert_eq!(error.offset(), 9);
    }
}
