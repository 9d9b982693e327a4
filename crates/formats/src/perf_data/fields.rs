//! Numbers and texts in the byte order of the machine that wrote the file.

use borehole_wire::{Cursor, Error};

/// The byte order of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum NumberOrder {
    #[default]
    Little,
    Big,
}

/// Reads the fields of a structure one after the other.
#[derive(Clone, Copy, Debug)]
pub(super) struct FieldReader<'a> {
    cursor: Cursor<'a>,
    order: NumberOrder,
}

impl<'a> FieldReader<'a> {
    /// Reads `bytes`, which are at `offset` in the file.
    pub(super) const fn new(bytes: &'a [u8], offset: usize, order: NumberOrder) -> Self {
        Self { cursor: Cursor::new(bytes, offset as u64), order }
    }

    /// Reads the file from `offset` on; nothing if it ends before.
    pub(super) fn from(file: &'a [u8], offset: u64, order: NumberOrder) -> Self {
        let start = usize::try_from(offset).map_or(file.len(), |start| start.min(file.len()));
        Self::new(&file[start..], start, order)
    }

    #[inline]
    pub(super) fn u16(&mut self) -> Result<u16, Error> {
        let bytes = self.cursor.array()?;
        Ok(if self.order == NumberOrder::Big { u16::from_be_bytes(bytes) } else { u16::from_le_bytes(bytes) })
    }

    #[inline]
    pub(super) fn u32(&mut self) -> Result<u32, Error> {
        let bytes = self.cursor.array()?;
        Ok(if self.order == NumberOrder::Big { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) })
    }

    #[inline]
    pub(super) fn u64(&mut self) -> Result<u64, Error> {
        let bytes = self.cursor.array()?;
        Ok(if self.order == NumberOrder::Big { u64::from_be_bytes(bytes) } else { u64::from_le_bytes(bytes) })
    }

    /// Flags that are numbered from the first byte on, whatever its first bit is.
    pub(super) fn flags(&mut self) -> Result<u64, Error> {
        let bytes: [u8; 8] = self.cursor.array()?;
        let is_big = self.order == NumberOrder::Big;
        Ok(u64::from_le_bytes(if is_big { bytes.map(u8::reverse_bits) } else { bytes }))
    }

    pub(super) fn bytes(&mut self, count: u64) -> Result<&'a [u8], Error> {
        self.cursor.bytes(usize::try_from(count).unwrap_or(usize::MAX))
    }

    /// The numbers of a list of `count`.
    pub(super) fn numbers(&mut self, count: u64) -> Result<Numbers<'a>, Error> {
        let bytes = self.bytes(count.saturating_mul(8))?;
        Ok(Numbers { bytes: bytes.as_chunks().0, order: self.order })
    }

    /// A text of which the length comes first; zeros fill it up.
    pub(super) fn long_text(&mut self) -> Result<&'a [u8], Error> {
        let length = self.u32()?;
        Ok(until_zero(self.bytes(length.into())?))
    }

    /// The rest as a text that ends at a zero.
    pub(super) fn text(self) -> &'a [u8] {
        until_zero(self.cursor.rest())
    }

    pub(super) const fn rest(&self) -> &'a [u8] {
        self.cursor.rest()
    }

    pub(super) const fn order(&self) -> NumberOrder {
        self.order
    }
}

fn until_zero(bytes: &[u8]) -> &[u8] {
    &bytes[..memchr::memchr(0, bytes).unwrap_or(bytes.len())]
}

/// A list of numbers in a file.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Numbers<'a> {
    bytes: &'a [[u8; 8]],
    order: NumberOrder,
}

impl Numbers<'_> {
    #[inline]
    pub(super) fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        let is_big = self.order == NumberOrder::Big;
        let number = move |&bytes| if is_big { u64::from_be_bytes(bytes) } else { u64::from_le_bytes(bytes) };
        self.bytes.iter().map(number)
    }
}
