//! Numbers and texts.

use std::borrow::Cow;

use borehole_wire::Cursor;

use super::NAME;
use super::layout::text;
use crate::documents::whole::cut_off;
use crate::{Error, Position};

/// The most bytes of a number.
const LONGEST_NUMBER: usize = 9;

/// Reads the values of an event or a constant.
#[derive(Clone, Copy, Debug)]
pub(super) struct ValueReader<'a> {
    pub(super) cursor: Cursor<'a>,
}

/// A text as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum StoredText<'a> {
    Absent,
    Here(Cow<'a, [u8]>),
    /// The key of a constant.
    Constant(u64),
}

impl<'a> ValueReader<'a> {
    /// Reads `bytes`, which are at `offset` in the file.
    pub(super) const fn new(bytes: &'a [u8], offset: usize) -> Self {
        Self { cursor: Cursor::new(bytes, offset as u64) }
    }

    pub(super) fn byte(&mut self) -> Result<u8, Error> {
        self.cursor.u8().map_err(|error| cut_off(NAME, error))
    }

    pub(super) fn skip(&mut self, bytes: u64) -> Result<&'a [u8], Error> {
        let count = usize::try_from(bytes).unwrap_or(usize::MAX);
        self.cursor.bytes(count).map_err(|error| cut_off(NAME, error))
    }

    /// A number: seven bits a byte, and all eight of the ninth.
    #[inline]
    pub(super) fn number(&mut self) -> Result<u64, Error> {
        // Most numbers are of one byte.
        match self.cursor.rest() {
            [byte @ 0..=0x7f, ..] => self.byte().map(|_| u64::from(*byte)),
            _ => self.long_number(),
        }
    }

    fn long_number(&mut self) -> Result<u64, Error> {
        let mut value = 0;
        for (place, &byte) in self.cursor.rest().iter().take(LONGEST_NUMBER).enumerate() {
            let is_last = place + 1 == LONGEST_NUMBER;
            let bits = if is_last { byte } else { byte & 0x7f };
            value |= u64::from(bits) << (7 * place);
            if is_last || byte < 0x80 {
                return self.skip(place as u64 + 1).map(|_| value);
            }
        }
        // The end comes before that of the number.
        self.skip(self.cursor.rest().len() as u64 + 1).map(|_| value)
    }

    /// The number of things that follow, each of at least a byte.
    ///
    /// # Errors
    /// If there cannot be as many.
    pub(super) fn count(&mut self) -> Result<usize, Error> {
        let at = self.cursor.offset();
        let count = self.number()?;
        let left = self.cursor.rest().len();
        usize::try_from(count).ok().filter(|&count| count <= left).ok_or_else(|| {
            let message = format!("truncated: expected {count} values, found {left} bytes");
            Error::truncated(NAME, Position::Byte(at), message)
        })
    }

    pub(super) fn text(&mut self) -> Result<StoredText<'a>, Error> {
        let at = self.cursor.offset();
        Ok(match self.byte()? {
            text::ABSENT => StoredText::Absent,
            text::EMPTY => StoredText::Here(Cow::Borrowed(b"")),
            text::CONSTANT => StoredText::Constant(self.number()?),
            text::UTF8 => {
                let length = self.number()?;
                StoredText::Here(Cow::Borrowed(self.skip(length)?))
            }
            text::CHARACTERS => StoredText::Here(self.characters()?),
            text::LATIN1 => {
                let length = self.number()?;
                let text: String = self.skip(length)?.iter().map(|&byte| char::from(byte)).collect();
                StoredText::Here(text.into_bytes().into())
            }
            unknown => {
                let message = format!("unknown form of a text: expected 0 to 5, found {unknown}");
                return Err(Error::malformed(NAME, Position::Byte(at), message));
            }
        })
    }

    /// UTF-16 units, each a number: of ASCII, these are its bytes.
    fn characters(&mut self) -> Result<Cow<'a, [u8]>, Error> {
        let count = self.count()?;
        if self.cursor.rest()[..count].is_ascii() {
            return Ok(Cow::Borrowed(self.skip(count as u64)?));
        }
        let mut units = Vec::new();
        for _ in 0..count {
            units.push(u16::try_from(self.number()?).unwrap_or(u16::MAX));
        }
        Ok(String::from_utf16_lossy(&units).into_bytes().into())
    }

    /// Skips a text without making one.
    pub(super) fn skip_text(&mut self) -> Result<(), Error> {
        match self.cursor.peek() {
            Some(text::UTF8 | text::LATIN1) => {
                self.byte()?;
                let length = self.number()?;
                self.skip(length)?;
            }
            _ => {
                self.text()?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> ValueReader<'_> {
        ValueReader::new(bytes, 0)
    }

    #[test]
    fn the_ninth_byte_of_a_number_has_eight_bits() {
        assert_eq!(read(&[0x7f]).number().unwrap(), 127);
        assert_eq!(read(&[0x80, 0x01]).number().unwrap(), 128);
        assert_eq!(read(&[0xff; 9]).number().unwrap(), u64::MAX);
        assert!(read(&[0xff; 8]).number().is_err());
    }

    #[test]
    fn texts_have_five_forms() {
        for (bytes, text) in [
            (&[0][..], StoredText::Absent),
            (&[1], StoredText::Here(b"".as_slice().into())),
            (&[2, 7], StoredText::Constant(7)),
            (&[3, 2, b'a', b'b'], StoredText::Here(b"ab".as_slice().into())),
            (&[4, 2, b'a', b'b'], StoredText::Here(b"ab".as_slice().into())),
            (&[4, 2, b'a', 0xe4, 0x01], StoredText::Here("aä".as_bytes().into())),
            (&[5, 1, 0xe4], StoredText::Here("ä".as_bytes().into())),
        ] {
            assert_eq!(read(bytes).text().unwrap(), text);
            let mut skipped = read(bytes);
            skipped.skip_text().unwrap();
            assert!(skipped.cursor.is_empty(), "{bytes:?}");
        }
        assert!(read(&[6]).text().is_err());
        assert!(read(&[4, 200]).text().is_err());
    }
}
