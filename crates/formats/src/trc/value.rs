//! Values of a stream, read without copying.

use borehole_wire::Cursor;

use super::batch::Batch;
use super::fault::{Fault, What};
use super::frame::Slot;
use super::layout::{FieldKind, FieldType, MAX_ELEMENTS, MAX_NESTING, MAX_VARINT_BYTES, OPTIONAL};

/// The value of a field of an event, borrowed from the stream.
#[derive(Clone, Copy, Debug)]
pub enum Value<'a> {
    /// No value.
    Absent,
    /// A number of a `U8`, `U16`, `U32` or `Varint` field.
    Unsigned(u64),
    /// A number of an `I64` field.
    Signed(i64),
    /// A number of an `F64` field.
    Float(f64),
    /// A boolean.
    Bool(bool),
    /// Text, usually but not necessarily UTF-8.
    Text(&'a [u8]),
    /// Bytes.
    Bytes(&'a [u8]),
    /// Addresses.
    Stack(Stack<'a>),
    /// A string of the pool.
    PooledText {
        /// Its id.
        id: u32,
        /// The string; `None` if it is not defined before the event.
        text: Option<&'a str>,
    },
    /// A stack of the pool.
    PooledStack {
        /// Its id.
        id: u32,
        /// The stack; `None` if it is not defined before the event.
        stack: Option<Stack<'a>>,
    },
    /// Pairs of text.
    TextMap(TextPairs<'a>),
    /// Values.
    List(Elements<'a>),
    /// Pairs of values.
    Map(Pairs<'a>),
}

impl<'a> Value<'a> {
    /// The number, for an unsigned value.
    #[inline]
    #[must_use]
    pub const fn as_u64(self) -> Option<u64> {
        match self {
            Self::Unsigned(value) => Some(value),
            _ => None,
        }
    }

    /// The number, for a signed value.
    #[inline]
    #[must_use]
    pub const fn as_i64(self) -> Option<i64> {
        match self {
            Self::Signed(value) => Some(value),
            _ => None,
        }
    }

    /// The number, for a floating-point value.
    #[inline]
    #[must_use]
    pub const fn as_f64(self) -> Option<f64> {
        match self {
            Self::Float(value) => Some(value),
            _ => None,
        }
    }

    /// The boolean, for a boolean value.
    #[inline]
    #[must_use]
    pub const fn as_bool(self) -> Option<bool> {
        match self {
            Self::Bool(value) => Some(value),
            _ => None,
        }
    }

    /// The bytes, for a value of bytes.
    #[inline]
    #[must_use]
    pub const fn as_bytes(self) -> Option<&'a [u8]> {
        match self {
            Self::Bytes(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// The text, from the event or the pool, if it is present and UTF-8.
    #[inline]
    #[must_use]
    pub fn as_str(self) -> Option<&'a str> {
        match self {
            Self::Text(bytes) => std::str::from_utf8(bytes).ok(),
            Self::PooledText { text, .. } => text,
            _ => None,
        }
    }

    /// The addresses, from the event or the pool, if they are present.
    #[inline]
    #[must_use]
    pub const fn as_stack(self) -> Option<Stack<'a>> {
        match self {
            Self::Stack(stack) => Some(stack),
            Self::PooledStack { stack, .. } => stack,
            _ => None,
        }
    }

    /// Whether the value is absent.
    #[inline]
    #[must_use]
    pub const fn is_absent(self) -> bool {
        matches!(self, Self::Absent)
    }
}

/// Addresses, the leaf first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stack<'a>(pub(super) &'a [[u8; 8]]);

impl<'a> Stack<'a> {
    /// The addresses.
    #[inline]
    pub fn addresses(self) -> impl ExactSizeIterator<Item = u64> + 'a {
        self.0.iter().map(|&bytes| u64::from_le_bytes(bytes))
    }

    /// The addresses as stored in the stream, the least significant byte first.
    #[inline]
    #[must_use]
    pub const fn as_bytes(self) -> &'a [[u8; 8]] {
        self.0
    }
}

/// Addresses, the leaf first, of a stream or of the program.
#[derive(Clone, Copy, Debug)]
pub enum StackFrames<'a> {
    /// In the form of a stream.
    Stored(Stack<'a>),
    /// In the form of the program.
    Native(&'a [u64]),
}

impl<'a> StackFrames<'a> {
    /// The number of addresses.
    #[inline]
    #[must_use]
    pub const fn len(self) -> usize {
        match self {
            Self::Stored(Stack(bytes)) => bytes.len(),
            Self::Native(addresses) => addresses.len(),
        }
    }

    /// Whether there are no addresses.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// The address at a depth, 0-based from the leaf.
    #[inline]
    #[must_use]
    pub fn address(self, depth: usize) -> Option<u64> {
        match self {
            Self::Stored(Stack(bytes)) => bytes.get(depth).map(|&bytes| u64::from_le_bytes(bytes)),
            Self::Native(addresses) => addresses.get(depth).copied(),
        }
    }

    /// The addresses.
    #[inline]
    pub fn addresses(self) -> impl Iterator<Item = u64> + 'a {
        (0..self.len()).filter_map(move |depth| self.address(depth))
    }
}

impl<'a> From<&'a [u64]> for StackFrames<'a> {
    fn from(addresses: &'a [u64]) -> Self {
        Self::Native(addresses)
    }
}

impl PartialEq for StackFrames<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.addresses().eq(other.addresses())
    }
}

impl Eq for StackFrames<'_> {}

/// The pairs of a map of text, in order; keys need not be different, nor UTF-8.
#[derive(Clone, Copy, Debug)]
pub struct TextPairs<'a> {
    rest: Cursor<'a>,
    left: u64,
}

impl<'a> Iterator for TextPairs<'a> {
    type Item = (&'a [u8], &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        Some((prefixed(&mut self.rest).ok()?, prefixed(&mut self.rest).ok()?))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (0, usize::try_from(self.left).ok())
    }
}

/// The values of a list.
#[derive(Clone, Copy, Debug)]
pub struct Elements<'a> {
    rest: Cursor<'a>,
    left: u64,
    batch: &'a Batch,
}

impl<'a> Iterator for Elements<'a> {
    type Item = Value<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let kind = element_kind(&mut self.rest).ok()?;
        let raw = Raw::read(kind, &mut self.rest).ok()?;
        Some(raw.view(kind, self.batch))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (0, usize::try_from(self.left).ok())
    }
}

/// The pairs of a map, in order; keys need not be different.
#[derive(Clone, Copy, Debug)]
pub struct Pairs<'a>(Elements<'a>);

impl<'a> Iterator for Pairs<'a> {
    type Item = (Value<'a>, Value<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        Some((self.0.next()?, self.0.next()?))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let (least, most) = self.0.size_hint();
        (least / 2, most.map(|most| most / 2))
    }
}

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
    pub(super) fn read(kind: FieldKind, cursor: &mut Cursor<'a>) -> Result<Self, Fault> {
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

    fn stack(cursor: &mut Cursor<'a>) -> Result<Self, Fault> {
        let count = cursor.u32_le()?;
        let payload = cursor.bytes(stack_bytes(count))?;
        Ok(Self { number: u64::from(count), payload })
    }

    fn text_map(cursor: &mut Cursor<'a>) -> Result<Self, Fault> {
        let count = cursor.u32_le()?;
        let all = cursor.rest();
        for _ in 0..u64::from(count) * 2 {
            prefixed(cursor)?;
        }
        Ok(Self { number: u64::from(count), payload: &all[..all.len() - cursor.rest().len()] })
    }

    /// Reads a list (`width` 1) or a map (`width` 2), to the end of its nested values.
    fn elements(width: u64, cursor: &mut Cursor<'a>) -> Result<Self, Fault> {
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

    /// The value, with its references resolved.
    #[inline(never)]
    fn view(self, kind: FieldKind, batch: &'a Batch) -> Value<'a> {
        Slot::of(&self).view(FieldType::required(kind), self.payload, batch)
    }

    /// The value, for a kind with elements.
    pub(super) const fn view_elements(self, kind: FieldKind, batch: &'a Batch) -> Value<'a> {
        let rest = Cursor::new(self.payload, 0);
        let left = self.number;
        match kind {
            FieldKind::List => Value::List(Elements { rest, left, batch }),
            FieldKind::Map => Value::Map(Pairs(Elements { rest, left, batch })),
            _ => Value::TextMap(TextPairs { rest, left }),
        }
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
    fn enter(&mut self, width: u64, cursor: &mut Cursor<'_>) -> Result<u64, Fault> {
        let at = cursor.offset();
        let count = cursor.u32_le()?;
        if count > MAX_ELEMENTS {
            return Err(Fault { at, what: What::Elements(count) });
        }
        let level = self.left.get_mut(self.depth).ok_or(Fault { at, what: What::Nesting })?;
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
fn element_kind(cursor: &mut Cursor<'_>) -> Result<FieldKind, Fault> {
    let at = cursor.offset();
    let byte = cursor.u8()?;
    FieldKind::from_byte(byte & !OPTIONAL).ok_or(Fault { at, what: What::FieldType(byte) })
}

/// The length of `count` addresses in bytes.
pub(super) fn stack_bytes(count: u32) -> usize {
    usize::try_from(u64::from(count) * 8).unwrap_or(usize::MAX)
}

/// Reads bytes after their length.
#[inline]
pub(super) fn prefixed<'a>(cursor: &mut Cursor<'a>) -> Result<&'a [u8], Fault> {
    let count = cursor.u32_le()?;
    Ok(cursor.bytes(usize::try_from(count).unwrap_or(usize::MAX))?)
}

/// Reads an unsigned varint of at most ten bytes.
#[inline]
pub(super) fn varint(cursor: &mut Cursor<'_>) -> Result<u64, Fault> {
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

fn long_varint(cursor: &mut Cursor<'_>) -> Result<u64, Fault> {
    let at = cursor.offset();
    let mut value = 0;
    for index in 0..MAX_VARINT_BYTES {
        let byte = cursor.u8()?;
        value |= u64::from(byte & 0x7f) << (7 * index);
        if byte < 0x80 {
            return Ok(value);
        }
    }
    Err(Fault { at, what: What::Varint })
}
