//! The documents of an input: one, or several concatenated in one file.
//!
//! Source: opentelemetry-collector-contrib, `exporter/fileexporter`: `format: json` writes a line a document,
//! `format: proto` or a compression its length in four bytes, big-endian, before each; opentelemetry-specification,
//! `protocol/file-exporter.md`: lengths as varints ("delimited").

use std::io::{BufRead, Chain, Cursor, Read};

use super::NAME;
use super::json::Data;
use super::read::malformed;
use crate::documents::json::{self, JsonMemory};
use crate::documents::whole::{DocumentDamage, read_up_to, read_whole};
use crate::{Error, Limits, Position};
use borehole_wire::envelope::Envelope;

/// The arrangement of documents in an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Packing {
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
pub(super) struct PackedDocument {
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
    limits: Limits,
    offset: u64,
    /// The number of ended lines.
    lines: u64,
    is_over: bool,
}

impl<R: BufRead> Documents<R> {
    /// Creates a reader of documents within the limits.
    ///
    /// # Errors
    /// If the input cannot be read.
    pub(super) fn new(mut input: R, limits: Limits) -> Result<Self, Error> {
        let mut head = Vec::new();
        let read = input.by_ref().take(HEAD_BYTES).read_to_end(&mut head);
        read.map_err(|error| Error::io(NAME, Position::Byte(0), error))?;
        let packing = Packing::of(&head);
        if packing == Packing::Json && head.starts_with(BYTE_ORDER_MARK) {
            head.drain(..BYTE_ORDER_MARK.len());
        }
        let input = Cursor::new(head).chain(input);
        Ok(Self { input, packing, limits, offset: 0, lines: 0, is_over: false })
    }

    /// The arrangement of the documents.
    pub(super) const fn packing(&self) -> Packing {
        self.packing
    }

    /// The next document; `None` at the end.
    ///
    /// # Errors
    /// Damage that is not skipped.
    pub(super) fn next_piece(
        &mut self,
        damage: &mut DocumentDamage,
    ) -> Result<Option<PackedDocument>, Error> {
        if self.is_over {
            return Ok(None);
        }
        match self.packing {
            Packing::Whole => {
                self.is_over = true;
                let bytes = read_whole(NAME, &mut self.input, &self.limits)?;
                Ok(Some(PackedDocument { bytes, base: 0, line: None }))
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

    fn next_object(&mut self, damage: &mut DocumentDamage) -> Result<Option<PackedDocument>, Error> {
        loop {
            let (_, is_there) =
                self.skip(|bytes| bytes.iter().position(|byte| !byte.is_ascii_whitespace()))?;
            if !is_there {
                return Ok(None);
            }
            let line = self.lines + 1;
            let memory = JsonMemory::new(self.limits);
            match json::parse_next(NAME, &mut self.input, &memory, &mut self.lines, Data(&memory)) {
                Ok(bytes) => return Ok(Some(PackedDocument { bytes, base: 0, line: Some(line) })),
                Err(error) => {
                    damage.meet(error, 0)?;
                    let (lost, _) = self.skip(|bytes| memchr::memchr(b'\n', bytes).map(|end| end + 1))?;
                    damage.recovery.lost_bytes = damage.recovery.lost_bytes.saturating_add(lost);
                }
            }
        }
    }

    /// Skips the bytes before `end`; returns their number, and whether there is an end.
    fn skip(&mut self, end: impl Fn(&[u8]) -> Option<usize>) -> Result<(u64, bool), Error> {
        let mut skipped = 0;
        loop {
            let bytes = self.input.fill_buf();
            let bytes = bytes.map_err(|error| Error::io(NAME, Position::Line(self.lines + 1), error))?;
            let (found, is_over) = (end(bytes), bytes.is_empty());
            let passed = found.unwrap_or(bytes.len());
            self.lines += bytes[..passed].iter().filter(|&&byte| byte == b'\n').count() as u64;
            self.input.consume(passed);
            skipped += passed as u64;
            if found.is_some() || is_over {
                return Ok((skipped, found.is_some()));
            }
        }
    }

    /// A document after its length. An error comes with the number of bytes lost.
    fn next_chunk(&mut self) -> Result<Option<PackedDocument>, (Error, u64)> {
        let Some(length) = self.length()? else { return Ok(None) };
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
        let is_fixed = self.packing == Packing::Lengths;
        let (mut length, most) = (0_u64, if is_fixed { 4 } else { 5 });
        for place in 0..most {
            let Some(&byte) = self.take(1)?.first() else {
                if place == 0 {
                    return Ok(None);
                }
                let missing = if is_fixed { format!("{} bytes", most - place) } else { "1 byte".to_owned() };
                let message = format!("truncated: {missing} missing in a length");
                return Err((Error::truncated(NAME, Position::Byte(self.offset), message), place));
            };
            if is_fixed {
                length = length << 8 | u64::from(byte);
                continue;
            }
            length |= u64::from(byte & 0x7f) << (7 * place);
            if byte < 0x80 {
                return Ok(Some(length));
            }
        }
        let too_long = || malformed(self.offset, "expected a length of at most 35 bits, found more");
        if is_fixed { Ok(Some(length)) } else { Err((too_long(), 0)) }
    }

    /// Takes `length` bytes, or fewer at the end.
    fn take(&mut self, length: u64) -> Result<Vec<u8>, (Error, u64)> {
        let bytes = read_up_to(NAME, &mut self.input, length, &self.limits).map_err(|error| {
            let at = self.offset + error.offset().unwrap_or_default();
            (error.at(Position::Byte(at)), 0)
        })?;
        self.offset += bytes.len() as u64;
        Ok(bytes)
    }

    /// Decodes a document that may be compressed and may be JSON.
    fn unpacked(&self, bytes: Vec<u8>, base: u64) -> Result<PackedDocument, Error> {
        let read = read_up_to(NAME, Envelope::new(&bytes[..]), u64::MAX, &self.limits);
        let mut plain = read.map_err(|error| match error.is_memory() {
            true => error.at(Position::Byte(base)),
            false => malformed(base, error.message()),
        })?;
        if Packing::of(&plain) == Packing::Json {
            let memory = JsonMemory::new(self.limits);
            let read = json::parse(NAME, &plain[..], &memory, Data(&memory));
            let in_place =
                |error: Error| Error::new(error.kind(), NAME, Position::Byte(base), error.message());
            plain = read.map_err(in_place)?;
        }
        Ok(PackedDocument { bytes: plain, base, line: None })
    }
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
    fn the_first_bytes_determine_the_packing() {
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
