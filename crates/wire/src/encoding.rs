//! Byte-order marks and UTF-16, decoded before the text readers: the output is UTF-8 without a mark.

use std::io::{self, Read};

/// The length of the longest mark, that of UTF-8.
const MARK_BYTES: usize = 3;

/// The number of bytes of UTF-16 decoded at once.
const CHUNK_BYTES: usize = 16 << 10;

/// Reads text as UTF-8. Inputs without a byte-order mark, and the bytes after a UTF-8 mark, are passed through
/// unchanged. UTF-16 needs its mark; invalid UTF-16 becomes U+FFFD.
///
/// # Examples
///
/// ```
/// use std::io::Read as _;
/// use borehole_wire::encoding::Decoded;
///
/// let mut text = String::new();
/// Decoded::new(&b"\xff\xfea\0;\0b\0 \x001\0"[..]).read_to_string(&mut text)?;
/// assert_eq!(text, "a;b 1");
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct Decoded<R> {
    input: R,
    coding: Option<Coding>,
    /// UTF-16 read but not decoded yet: the beginning of a character.
    raw: Vec<u8>,
    ready: Vec<u8>,
    /// The number of bytes of `ready` already returned.
    given: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Coding {
    Utf8,
    LittleEndian,
    BigEndian,
}

impl<R: Read> Decoded<R> {
    /// Creates a reader of `input`.
    pub const fn new(input: R) -> Self {
        Self { input, coding: None, raw: Vec::new(), ready: Vec::new(), given: 0 }
    }

    /// The input.
    pub const fn input(&self) -> &R {
        &self.input
    }

    /// Reads the mark, if there is one.
    fn begin(&mut self) -> io::Result<Coding> {
        let mut start = Vec::new();
        self.input.by_ref().take(MARK_BYTES as u64).read_to_end(&mut start)?;
        let (coding, mark_bytes) = match start[..] {
            [0xef, 0xbb, 0xbf] => (Coding::Utf8, 3),
            [0xff, 0xfe, ..] => (Coding::LittleEndian, 2),
            [0xfe, 0xff, ..] => (Coding::BigEndian, 2),
            _ => (Coding::Utf8, 0),
        };
        start.drain(..mark_bytes);
        *(if coding == Coding::Utf8 { &mut self.ready } else { &mut self.raw }) = start;
        self.coding = Some(coding);
        Ok(coding)
    }

    /// Decodes another piece; false at the end of the input.
    fn turn(&mut self, coding: Coding) -> io::Result<bool> {
        let read = self.input.by_ref().take(CHUNK_BYTES as u64).read_to_end(&mut self.raw)?;
        if read == 0 && self.raw.is_empty() {
            return Ok(false);
        }
        let is_end = read < CHUNK_BYTES;
        let units: Vec<u16> = self.raw.chunks_exact(2).map(|pair| unit([pair[0], pair[1]], coding)).collect();
        // The first half of a surrogate pair waits for the second.
        let waits = !is_end && units.last().is_some_and(|unit| (0xd800..0xdc00).contains(unit));
        let turned = units.len() - usize::from(waits);
        self.ready.clear();
        self.given = 0;
        let mut bytes = [0; 4];
        for character in char::decode_utf16(units[..turned].iter().copied()) {
            let character = character.unwrap_or(char::REPLACEMENT_CHARACTER);
            self.ready.extend_from_slice(character.encode_utf8(&mut bytes).as_bytes());
        }
        self.raw.drain(..turned * 2);
        if is_end && !self.raw.is_empty() {
            self.raw.clear();
            self.ready.extend_from_slice(char::REPLACEMENT_CHARACTER.encode_utf8(&mut bytes).as_bytes());
        }
        Ok(true)
    }
}

fn unit(bytes: [u8; 2], coding: Coding) -> u16 {
    if coding == Coding::BigEndian { u16::from_be_bytes(bytes) } else { u16::from_le_bytes(bytes) }
}

impl<R: Read> Read for Decoded<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let coding = match self.coding {
            Some(coding) => coding,
            None => self.begin()?,
        };
        while self.given == self.ready.len() {
            if coding == Coding::Utf8 {
                return self.input.read(out);
            }
            if !self.turn(coding)? {
                return Ok(0);
            }
        }
        let count = (&self.ready[self.given..]).read(out)?;
        self.given += count;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(bytes: &[u8]) -> Vec<u8> {
        let mut text = Vec::new();
        Decoded::new(bytes).read_to_end(&mut text).unwrap();
        text
    }

    fn utf16(text: &str, mark: [u8; 2], bytes: fn(u16) -> [u8; 2]) -> Vec<u8> {
        mark.into_iter().chain(text.encode_utf16().flat_map(bytes)).collect()
    }

    #[test]
    fn text_is_the_same_in_every_coding_whatever_its_length() {
        // Place a character of two units at every position of a piece.
        for length in CHUNK_BYTES / 2 - 4..CHUNK_BYTES / 2 + 4 {
            let text = format!("{}\u{1f418}é\n", "a".repeat(length));
            assert_eq!(decoded(&utf16(&text, [0xff, 0xfe], u16::to_le_bytes)), text.as_bytes());
            assert_eq!(decoded(&utf16(&text, [0xfe, 0xff], u16::to_be_bytes)), text.as_bytes());
            assert_eq!(decoded(&[b"\xef\xbb\xbf", text.as_bytes()].concat()), text.as_bytes());
            assert_eq!(decoded(text.as_bytes()), text.as_bytes());
        }
    }

    #[test]
    fn bytes_without_a_mark_go_through() {
        for bytes in [&b""[..], b"a", b"\xff", b"\xef\xbb", b"\x0a\x04\x08\x01", b"a\xff\xfe"] {
            assert_eq!(decoded(bytes), bytes);
        }
    }

    #[test]
    fn invalid_utf16_is_replaced() {
        assert_eq!(decoded(b"\xff\xfe"), b"");
        assert_eq!(decoded(b"\xff\xfea"), "\u{fffd}".as_bytes());
        assert_eq!(decoded(b"\xff\xfe\0\xd8a\0"), "\u{fffd}a".as_bytes());
        assert_eq!(decoded(b"\xff\xfea\0\0\xd8"), "a\u{fffd}".as_bytes());
    }
}
