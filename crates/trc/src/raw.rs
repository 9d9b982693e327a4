//! The bytes of values, read without copying.

use borehole_wire::Cursor;

use super::fault::{FaultKind, FrameFault};
use super::layout::{FieldKind, MAX_ELEMENTS, MAX_NESTING, MAX_VARINT_BYTES, OPTIONAL};

/// A value by its position.
#[derive(Clone, Copy, Debug)]
pub(super) struct Raw<'a> {
    /// The number itself, or the count of the payload's elements.
    pub(super) number: u64,
    /// The bytes after the number, up to the end of the value; empty for numbers.
    pub(super) payload: &'a [u8],
}

impl<'a> Raw<'a> {
    /// Reads the value at `cursor`, checked to its end.
    #[inline]
    pub(super) fn read(kind: FieldKind, cursor: &mut Cursor<'a>) -> Result<Self, FrameFault> {
        let number = match kind {
            FieldKind::Varint => varint(cursor)?,
            FieldKind::Bool | FieldKind::U8 => u64::from(cursor.u8()?),
            FieldKind::U16 => u64::from(cursor.u16_le()?),
            FieldKind::U32 | FieldKind::PooledString | FieldKind::PooledStack => u64::from(cursor.u32_le()?),
            FieldKind::I64 | FieldKind::F64 => cursor.u64_le()?,
            FieldKind::String | FieldKind::Bytes => {
                let payload = prefixed(cursor)?;
                return Ok(Self { number: payload.len() as u64, payload });
            }
            FieldKind::Stack => return Self::stack(cursor),
            FieldKind::StringMap => return Self::text_map(cursor),
            FieldKind::List => return Self::elements(1, cursor),
            FieldKind::Map => return Self::elements(2, cursor),
        };
        Ok(Self { number, payload: &[] })
    }

    fn stack(cursor: &mut Cursor<'a>) -> Result<Self, FrameFault> {
        let count = cursor.u32_le()?;
        let payload = cursor.bytes(stack_bytes(count))?;
        Ok(Self { number: u64::from(count), payload })
    }

    fn text_map(cursor: &mut Cursor<'a>) -> Result<Self, FrameFault> {
        let count = cursor.u32_le()?;
        let all = cursor.rest();
        for _ in 0..u64::from(count) * 2 {
            prefixed(cursor)?;
        }
        Ok(Self { number: u64::from(count), payload: &all[..all.len() - cursor.rest().len()] })
    }

    /// Reads a list (`width` 1) or a map (`width` 2), to the end of its nested values.
    fn elements(width: u64, cursor: &mut Cursor<'a>) -> Result<Self, FrameFault> {
        let mut open = Nesting::default();
        let count = open.enter(width, cursor)?;
        let all = cursor.rest();
        while open.step() {
            match element_kind(cursor)? {
                FieldKind::List => open.enter(1, cursor)?,
                FieldKind::Map => open.enter(2, cursor)?,
                kind => Self::read(kind, cursor)?.number,
            };
        }
        Ok(Self { number: count * width, payload: &all[..all.len() - cursor.rest().len()] })
    }
}

/// The number of remaining values of each open list or map, the outermost first.
#[derive(Default)]
struct Nesting {
    left: [u64; MAX_NESTING],
    depth: usize,
}

impl Nesting {
    /// Reads the number of elements, of `width` values each.
    fn enter(&mut self, width: u64, cursor: &mut Cursor<'_>) -> Result<u64, FrameFault> {
        let at = cursor.offset();
        let count = cursor.u32_le()?;
        if count > MAX_ELEMENTS {
            return Err(FrameFault { at, what: FaultKind::Elements(count) });
        }
        let level = self.left.get_mut(self.depth).ok_or(FrameFault { at, what: FaultKind::Nesting })?;
        *level = u64::from(count) * width;
        self.depth += 1;
        Ok(u64::from(count))
    }

    /// Whether another value follows; counts it as read.
    fn step(&mut self) -> bool {
        while let Some(top) = self.depth.checked_sub(1) {
            if let Some(left) = self.left[top].checked_sub(1) {
                self.left[top] = left;
                return true;
            }
            self.depth = top;
        }
        false
    }
}

/// Reads the type of an element. Its optional bit has no meaning: no presence byte follows.
///
/// Source: `dial9-trace-format` 0.5.4; `list_optional_tag.bin`.
pub(super) fn element_kind(cursor: &mut Cursor<'_>) -> Result<FieldKind, FrameFault> {
    let at = cursor.offset();
    let byte = cursor.u8()?;
    FieldKind::from_byte(byte & !OPTIONAL).ok_or(FrameFault { at, what: FaultKind::FieldType(byte) })
}

/// The length of `count` addresses in bytes.
pub(super) fn stack_bytes(count: u32) -> usize {
    usize::try_from(u64::from(count) * 8).unwrap_or(usize::MAX)
}

/// Reads bytes after their length.
#[inline]
pub(super) fn prefixed<'a>(cursor: &mut Cursor<'a>) -> Result<&'a [u8], FrameFault> {
    let count = cursor.u32_le()?;
    Ok(cursor.bytes(usize::try_from(count).unwrap_or(usize::MAX))?)
}

/// Reads an unsigned varint of at most ten bytes.
#[inline]
pub(super) fn varint(cursor: &mut Cursor<'_>) -> Result<u64, FrameFault> {
    match cursor.peek() {
        Some(byte) if byte < 0x80 => Ok(u64::from(cursor.u8()?)),
        _ => long_varint(cursor),
    }
}

/// The varint at the start of eight bytes, with its length, unless it is longer: all bytes at once.
#[inline]
pub(super) const fn short_varint(word: u64) -> Option<(u64, usize)> {
    if word & 0x80 == 0 {
        return Some((word & 0x7f, 1));
    }
    if word & 0x8000 == 0 {
        return Some((word & 0x7f | word >> 1 & 0x3f80, 2));
    }
    let ends = !word & 0x8080_8080_8080_8080;
    if ends == 0 {
        return None;
    }
    // Everything up to the last byte's top bit, which is 0 itself, and of each byte the lower seven bits.
    let groups = word & (ends ^ (ends - 1)) & 0x7f7f_7f7f_7f7f_7f7f;
    let pairs = groups & 0x007f_007f_007f_007f | (groups & 0x7f00_7f00_7f00_7f00) >> 1;
    let fours = pairs & 0x0000_3fff_0000_3fff | (pairs & 0x3fff_0000_3fff_0000) >> 2;
    let number = fours & 0x0fff_ffff | (fours & 0x0fff_ffff_0000_0000) >> 4;
    Some((number, ends.trailing_zeros() as usize / 8 + 1))
}

fn long_varint(cursor: &mut Cursor<'_>) -> Result<u64, FrameFault> {
    let at = cursor.offset();
    let mut value = 0;
    for index in 0..MAX_VARINT_BYTES {
        let byte = cursor.u8()?;
        value |= u64::from(byte & 0x7f) << (7 * index);
        if byte < 0x80 {
            return Ok(value);
        }
    }
    Err(FrameFault { at, what: FaultKind::Varint })
}
