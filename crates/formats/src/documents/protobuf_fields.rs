//! Protobuf messages, read in place. Source: protobuf.dev, "Encoding".
//!
//! Nothing is copied: a field is a number, or a cursor over its bytes.

use borehole_memory::HeldBytes as _;
use borehole_wire::{Cursor, ErrorKind as WireErrorKind};

use crate::documents::protobuf::wire;
use crate::documents::whole::DocumentDamage;
use crate::{Error, Limits, Position};

/// The fields of one message, in order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MessageFields<'a> {
    cursor: Cursor<'a>,
    /// A nested message cannot be cut off: its length was checked before.
    nested: bool,
    /// The format, for errors.
    format: &'static str,
}

/// One field.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WireField<'a> {
    pub(crate) number: u32,
    pub(crate) offset: u64,
    format: &'static str,
    value: WireValue<'a>,
}

#[derive(Clone, Copy, Debug)]
enum WireValue<'a> {
    Varint(u64),
    Bytes(Cursor<'a>),
    Fixed64(u64),
    Fixed32,
}

/// Passes each field of a document, which begins at `base` in its input, to `take`. Returns the bytes up to the end of
/// the readable fields.
///
/// # Errors
/// Damage that is not skipped.
pub(crate) fn read_document<'a>(
    format: &'static str,
    base: u64,
    bytes: &'a [u8],
    damage: &mut DocumentDamage,
    mut take: impl FnMut(&WireField<'a>) -> Result<(), Error>,
) -> Result<&'a [u8], Error> {
    let mut fields = MessageFields::within_document(format, bytes, base);
    loop {
        let before = fields.offset();
        match fields.next_field() {
            Ok(None) => return Ok(bytes),
            Ok(Some(field)) => {
                if let Err(error) = take(&field) {
                    damage.meet(error, fields.offset() - before)?;
                }
            }
            // Without a readable length, the start of the next field is unknown.
            Err(error) => {
                let whole = usize::try_from(before - base).unwrap_or(bytes.len());
                let (read, lost) = bytes.split_at(whole);
                damage.meet(error, lost.len() as u64)?;
                return Ok(read);
            }
        }
    }
}

impl<'a> MessageFields<'a> {
    /// The fields of a document whose first one is at `offset`.
    pub(crate) const fn within_document(format: &'static str, bytes: &'a [u8], offset: u64) -> Self {
        Self { cursor: Cursor::new(bytes, offset), nested: false, format }
    }

    /// The number of bytes after the last field read.
    pub(crate) const fn left(&self) -> usize {
        self.cursor.rest().len()
    }

    pub(crate) const fn offset(&self) -> u64 {
        self.cursor.offset()
    }

    /// The next field; on errors the cursor does not move.
    pub(crate) fn next_field(&mut self) -> Result<Option<WireField<'a>>, Error> {
        if self.cursor.is_empty() {
            return Ok(None);
        }
        let mut cursor = self.cursor;
        let field = self.read_field(&mut cursor)?;
        self.cursor = cursor;
        Ok(Some(field))
    }

    /// Passes the fields to `take`.
    #[inline]
    pub(crate) fn each(
        mut self,
        mut take: impl FnMut(&WireField<'a>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        while let Some(field) = self.next_field()? {
            take(&field)?;
        }
        Ok(())
    }

    /// Passes the fields to `take`, which collects them in `row`.
    #[inline]
    pub(crate) fn collect<T>(
        self,
        mut row: T,
        mut take: impl FnMut(&mut T, &WireField<'a>) -> Result<(), Error>,
    ) -> Result<T, Error> {
        self.each(|field| take(&mut row, field)).map(|()| row)
    }

    fn read_field(&self, cursor: &mut Cursor<'a>) -> Result<WireField<'a>, Error> {
        let offset = cursor.offset();
        let tag = cursor.varint().map_err(|error| self.wire_error(error))?;
        let number = u32::try_from(tag >> 3).ok().filter(|&number| number != 0);
        let number = number
            .ok_or_else(|| self.malformed(offset, format!("expected a field number, found {}", tag >> 3)))?;
        let value = match tag & 7 {
            wire::VARINT => cursor.varint().map(WireValue::Varint),
            wire::BYTES => cursor.varint().and_then(|length| {
                let start = cursor.offset();
                let bytes = cursor.bytes(usize::try_from(length).unwrap_or(usize::MAX))?;
                Ok(WireValue::Bytes(Cursor::new(bytes, start)))
            }),
            wire::FIXED64 => cursor.u64_le().map(WireValue::Fixed64),
            wire::FIXED32 => cursor.bytes(4).map(|_| WireValue::Fixed32),
            other => {
                return Err(self.malformed(offset, format!("expected wire type 0, 1, 2 or 5, found {other}")));
            }
        };
        let value = value.map_err(|error| self.wire_error(error))?;
        Ok(WireField { number, offset, format: self.format, value })
    }

    fn malformed(&self, offset: u64, message: String) -> Error {
        Error::malformed(self.format, Position::Byte(offset), message)
    }

    fn wire_error(&self, error: borehole_wire::Error) -> Error {
        let position = Position::Byte(error.offset());
        match error.kind() {
            WireErrorKind::Truncated { missing } if self.nested => {
                let message = format!("expected {missing} more bytes in the message");
                Error::malformed(self.format, position, message)
            }
            WireErrorKind::Truncated { missing } => {
                Error::truncated(self.format, position, format!("truncated: {missing} bytes missing"))
            }
            _ => Error::malformed(self.format, position, "expected a varint of at most 64 bits, found more"),
        }
    }
}

impl<'a> WireField<'a> {
    pub(crate) fn number(&self) -> Result<u64, Error> {
        match self.value {
            WireValue::Varint(value) => Ok(value),
            _ => Err(self.unexpected("a number")),
        }
    }

    pub(crate) fn signed(&self) -> Result<i64, Error> {
        self.number().map(u64::cast_signed)
    }

    /// Reads a number into its place.
    pub(crate) fn number_to(&self, place: &mut u64) -> Result<(), Error> {
        self.number().map(|number| *place = number)
    }

    /// Like [`Self::number_to`], signed.
    pub(crate) fn signed_to(&self, place: &mut i64) -> Result<(), Error> {
        self.signed().map(|number| *place = number)
    }

    /// Reads bytes; `expected` names them, for errors.
    pub(crate) fn bytes(&self, expected: &str) -> Result<&'a [u8], Error> {
        self.cursor(expected).map(|cursor| cursor.rest())
    }

    pub(crate) fn message(&self) -> Result<MessageFields<'a>, Error> {
        Ok(MessageFields { cursor: self.cursor("a message")?, nested: true, format: self.format })
    }

    fn cursor(&self, expected: &str) -> Result<Cursor<'a>, Error> {
        match self.value {
            WireValue::Bytes(cursor) => Ok(cursor),
            _ => Err(self.unexpected(expected)),
        }
    }

    /// Reads a repeated number: a packed block or a single one.
    pub(crate) fn numbers(&self, mut take: impl FnMut(u64)) -> Result<(), Error> {
        self.repeated(Self::number, Cursor::varint, |number| {
            take(number);
            Ok(())
        })
    }

    /// Appends a repeated number to `column`, as long as that and `more` bytes for each of its elements are within the limits.
    pub(crate) fn numbers_to<T>(
        &self,
        column: &mut Vec<T>,
        limits: &Limits,
        more: usize,
        convert: impl Fn(u64) -> T,
    ) -> Result<(), Error> {
        self.repeated(Self::number, Cursor::varint, |number| self.push(column, limits, more, convert(number)))
    }

    /// Appends a repeated number of eight bytes to `column`, as long as that is within the limits.
    pub(crate) fn fixed64s_to(&self, column: &mut Vec<u64>, limits: &Limits) -> Result<(), Error> {
        self.repeated(Self::fixed64, Cursor::u64_le, |number| self.push(column, limits, 0, number))
    }

    /// Appends a value to `column`, which may have to grow, as long as that and `more` bytes for each of its elements are
    /// within the limits: a byte of a message can become many times as much.
    #[inline]
    pub(crate) fn push<T>(
        &self,
        column: &mut Vec<T>,
        limits: &Limits,
        more: usize,
        value: T,
    ) -> Result<(), Error> {
        if column.len() == column.capacity() {
            let grown = 2 * (column.held_bytes() + column.capacity().saturating_mul(more));
            self.check_memory(limits, grown)?;
        }
        column.push(value);
        Ok(())
    }

    /// Fails if `held` bytes, or what the program holds, are more than allowed.
    pub(crate) fn check_memory(&self, limits: &Limits, held: usize) -> Result<(), Error> {
        limits.check(held).map_err(|over| Error::memory(self.format, Position::Byte(self.offset), over))
    }

    #[inline]
    fn repeated(
        &self,
        single: impl Fn(&Self) -> Result<u64, Error>,
        packed: impl Fn(&mut Cursor<'a>) -> Result<u64, borehole_wire::Error>,
        mut take: impl FnMut(u64) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let WireValue::Bytes(mut cursor) = self.value else { return take(single(self)?) };
        let block = MessageFields { cursor, nested: true, format: self.format };
        while !cursor.is_empty() {
            take(packed(&mut cursor).map_err(|error| block.wire_error(error))?)?;
        }
        Ok(())
    }

    /// Reads a number of eight bytes.
    pub(crate) fn fixed64(&self) -> Result<u64, Error> {
        match self.value {
            WireValue::Fixed64(value) => Ok(value),
            _ => Err(self.unexpected("a number of eight bytes")),
        }
    }

    #[cold]
    fn unexpected(&self, expected: &str) -> Error {
        let found = match self.value {
            WireValue::Varint(_) => "a number",
            WireValue::Bytes(_) => "bytes",
            WireValue::Fixed64(_) | WireValue::Fixed32 => "a fixed-width number",
        };
        let position = Position::Byte(self.offset);
        let message = format!("expected {expected} in field {}, found {found}", self.number);
        Error::malformed(self.format, position, message)
    }
}
