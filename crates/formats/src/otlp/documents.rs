//! The documents of an input: one, or several concatenated in one file.
//!
//! Source: opentelemetry-collector-contrib, `exporter/fileexporter`: `format: json` writes a line a document,
//! `format: proto` or a compression its length in four bytes, big-endian, before each; opentelemetry-specification,
//! `protocol/file-exporter.md`: lengths as varints ("delimited").

use std::io::{BufRead, Chain, Cursor, Read};

use super::NAME;
use super::json::Data;
use crate::document::{Damage, read_whole};
use crate::envelope::Envelope;
use crate::{Error, ErrorKind, Position, json_document};

/// The arrangement of documents in an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Packing {
    /// A single document.
    Whole,
    /// JSON documents.
    Json,
    /// Documents preceded by their lengths in four bytes.
    Lengths,
    /// Documents preceded by their lengths as varints.
    Varints,
}

/// The number of bytes that determine the packing.
const HEAD_BYTES: u64 = 16;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// A document.
#[derive(Debug)]
pub(super) struct Piece {
    pub(super) bytes: Vec<u8>,
    /// The offset of its bytes in the input.
    pub(super) base: u64,
    /// The line at which it begins; `None` for binary documents.
    pub(super) line: Option<u64>,
}

/// Reads documents in order.
pub(super) struct Documents<R> {
    input: Chain<Cursor<Vec<u8>>, R>,
    packing: Packing,
    limit: usize,
    offset: u64,
    /// The number of ended lines.
    lines: u64,
    is_over: bool,
}

impl<R: BufRead> Documents<R> {
    /// Creates a reader of documents of at most `limit` bytes.
    ///
    /// # Errors
    /// If the input cannot be read.
    pub(super) fn new(mut input: R, limit: usize) -> Result<Self, Error> {
        let mut head = Vec::new();
        let read = input.by_ref().take(HEAD_BYTES).read_to_end(&mut head);
        read.map_err(|error| Error::io(NAME, Position::Byte(0), error))?;
        let packing = Packing::of(&head);
        if packing == Packing::Json && head.starts_with(BYTE_ORDER_MARK) {
            head.drain(..BYTE_ORDER_MARK.len());
        }
        let input = Cursor::new(head).chain(input);
        Ok(Self { input, packing, limit, offset: 0, lines: 0, is_over: false })
    }

    /// The next document; `None` at the end.
    ///
    /// # Errors
    /// Damage that is not skipped.
    pub(super) fn next_piece(&mut self, damage: &mut Damage) -> Result<Option<Piece>, Error> {
        if self.is_over {
            return Ok(None);
        }
        match self.packing {
            Packing::Whole => {
                self.is_over = true;
                let bytes = read_whole(NAME, &mut self.input, self.limit)?;
                Ok(Some(Piece { bytes, base: 0, line: None }))
            }
            Packing::Json => self.next_object(damage),
            Packing::Lengths | Packing::Varints => match self.next_chunk() {
                Ok(piece) => Ok(piece),
                // The start of the following document is unknown.
                Err((error, lost)) => {
                    self.is_over = true;
                    damage.meet(error, lost)?;
                    Ok(None)
                }
            },
        }
    }

    fn next_object(&mut self, damage: &mut Damage) -> Result<Option<Piece>, Error> {
        loop {
            if !self.skip_space()? {
                return Ok(None);
            }
            let line = self.lines + 1;
            match json_document::parse_next(NAME, &mut self.input, self.limit, &mut self.lines, Data) {
                Ok(bytes) => return Ok(Some(Piece { bytes, base: 0, line: Some(line) })),
                Err(error) => {
                    damage.meet(error, 0)?;
                    damage.recovery.lost_bytes = damage.recovery.lost_bytes.saturating_add(self.skip_line()?);
                }
            }
        }
    }

    /// Skips white space; false at the end.
    fn skip_space(&mut self) -> Result<bool, Error> {
        loop {
            let bytes = self.input.fill_buf().map_err(|error| io(self.lines, error))?;
            let space = bytes.iter().position(|byte| !byte.is_ascii_whitespace());
            let (is_end, skipped) = (bytes.is_empty(), space.unwrap_or(bytes.len()));
            self.lines += bytes[..skipped].iter().filter(|&&byte| byte == b'\n').count() as u64;
            self.input.consume(skipped);
            if space.is_some() || is_end {
                return Ok(!is_end);
            }
        }
    }

    /// Skips the rest of the line; returns the number of bytes skipped.
    fn skip_line(&mut self) -> Result<u64, Error> {
        let mut skipped = 0;
        loop {
            let bytes = self.input.fill_buf().map_err(|error| io(self.lines, error))?;
            let end = memchr::memchr(b'\n', bytes);
            let (is_end, passed) = (bytes.is_empty(), end.map_or(bytes.len(), |end| end + 1));
            self.input.consume(passed);
            skipped += passed as u64;
            if end.is_some() || is_end {
                self.lines += u64::from(end.is_some());
                return Ok(skipped);
            }
        }
    }

    /// A document after its length. An error comes with the number of bytes lost.
    fn next_chunk(&mut self) -> Result<Option<Piece>, (Error, u64)> {
        let Some(length) = self.length()? else { return Ok(None) };
        let limit = self.limit as u64;
        if length > limit {
            return Err((too_large(self.offset, limit), 0));
        }
        let base = self.offset;
        let bytes = self.take(length)?;
        let missing = length - bytes.len() as u64;
        if missing > 0 {
            let message = format!("truncated: {missing} bytes missing");
            return Err((Error::truncated(NAME, Position::Byte(self.offset), message), bytes.len() as u64));
        }
        self.unpacked(bytes, base).map(Some).map_err(|error| (error, length))
    }

    /// The length of the next document; `None` at the end.
    fn length(&mut self) -> Result<Option<u64>, (Error, u64)> {
        if self.packing == Packing::Lengths {
            let bytes = self.take(4)?;
            let cut = |length: usize| {
                let message = format!("truncated: {} bytes missing in a length", 4 - length);
                (Error::truncated(NAME, Position::Byte(self.offset), message), length as u64)
            };
            return match <[u8; 4]>::try_from(&bytes[..]) {
                Ok(length) => Ok(Some(u64::from(u32::from_be_bytes(length)))),
                Err(_) if bytes.is_empty() => Ok(None),
                Err(_) => Err(cut(bytes.len())),
            };
        }
        let mut length = 0_u64;
        for place in 0..5 {
            let byte = self.take(1)?;
            match byte.first() {
                None if place == 0 => return Ok(None),
                None => {
                    let message = "truncated: 1 bytes missing in a length";
                    return Err((Error::truncated(NAME, Position::Byte(self.offset), message), place));
                }
                Some(&byte) => {
                    length |= u64::from(byte & 0x7f) << (7 * place);
                    if byte < 0x80 {
                        return Ok(Some(length));
                    }
                }
            }
        }
        Err((
            Error::malformed(NAME, Position::Byte(self.offset), "expected a length, found more than 35 bits"),
            0,
        ))
    }

    /// Takes `length` bytes, or fewer at the end.
    fn take(&mut self, length: u64) -> Result<Vec<u8>, (Error, u64)> {
        let mut bytes = Vec::new();
        let read = self.input.by_ref().take(length).read_to_end(&mut bytes);
        self.offset += bytes.len() as u64;
        let position = Position::Byte(self.offset);
        read.map_err(|error| (Error::io(NAME, position, error), 0))?;
        Ok(bytes)
    }

    /// Decodes a document that may be compressed and may be JSON.
    fn unpacked(&self, bytes: Vec<u8>, base: u64) -> Result<Piece, Error> {
        let mut plain = Vec::new();
        let read =
            Envelope::new(&bytes[..]).take((self.limit as u64).saturating_add(1)).read_to_end(&mut plain);
        read.map_err(|error| Error::malformed(NAME, Position::Byte(base), error.to_string()))?;
        if plain.len() > self.limit {
            return Err(too_large(base, self.limit as u64));
        }
        if Packing::of(&plain) == Packing::Json {
            let read = json_document::parse(NAME, &plain[..], self.limit, Data);
            let in_place =
                |error: Error| Error::new(error.kind(), NAME, Position::Byte(base), error.message());
            plain = read.map_err(in_place)?;
        }
        Ok(Piece { bytes: plain, base, line: None })
    }
}

fn io(lines: u64, error: std::io::Error) -> Error {
    Error::io(NAME, Position::Line(lines + 1), error)
}

fn too_large(offset: u64, limit: u64) -> Error {
    let message = format!("document too large: expected at most {limit} bytes");
    Error::new(ErrorKind::Limit, NAME, Position::Byte(offset), message)
}

impl Packing {
    /// Detects the packing from the first bytes of an input.
    fn of(head: &[u8]) -> Self {
        let text = head.strip_prefix(BYTE_ORDER_MARK).unwrap_or(head).trim_ascii_start();
        if let Some(object) = text.strip_prefix(b"{") {
            // A binary document may begin with these bytes, a field 1 of 123 bytes, but without a quotation mark after
            // them.
            if matches!(object.trim_ascii_start().first(), None | Some(b'"' | b'}')) {
                return Self::Json;
            }
        }
        match head {
            // No field has the number 0. Documents have fields 1 and 2.
            [0..=7, ..] => Self::Lengths,
            [0x0a | 0x12, ..] => Self::Whole,
            _ => {
                let length = head.iter().position(|&byte| byte < 0x80).map_or(head.len(), |end| end + 1);
                let begins = matches!(head.get(length), Some(0x0a | 0x12));
                if begins && length <= 5 { Self::Varints } else { Self::Whole }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_input_begins_with_tells_how_documents_stand_in_it() {
        for (head, packing) in [
            (&b"{\"resourceProfiles\""[..], Packing::Json),
            (b"\xef\xbb\xbf \n{ }", Packing::Json),
            (b"\x0a{\x0a\x10", Packing::Whole),
            (b"\x12\x03\x0a\x01", Packing::Whole),
            (b"\0\0\x7c\xb8\x0a\xbb\x77", Packing::Lengths),
            (b"\xb8\xf9\x01\x0a\xbb\x77", Packing::Varints),
            (b"\x21\x0a\x1f", Packing::Varints),
            (b"\xff\xff\xff\xff\xff\xff\x0a", Packing::Whole),
            (b"", Packing::Whole),
        ] {
            assert_eq!(Packing::of(head), packing, "{head:?}");
        }
    }
}
