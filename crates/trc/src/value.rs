//! Values of a stream, read without copying.

use std::ops::Range;

use borehole_wire::Cursor;

use super::batch::Batch;
use super::layout::{FieldKind, FieldType};
use super::raw::{Raw, element_kind, prefixed};

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

/// Accessors for one kind of value each: `None` for other kinds.
macro_rules! accessors {
    ($($name:ident: $variant:ident, $type:ty, $description:literal;)*) => {$(
        #[doc = $description]
        #[inline]
        #[must_use]
        pub const fn $name(self) -> Option<$type> {
            match self {
                Self::$variant(value) => Some(value),
                _ => None,
            }
        }
    )*};
}

impl<'a> Value<'a> {
    accessors! {
        as_u64: Unsigned, u64, "The number, for an unsigned value.";
        as_i64: Signed, i64, "The number, for a signed value.";
        as_f64: Float, f64, "The number, for a floating-point value.";
        as_bool: Bool, bool, "The boolean, for a boolean value.";
        as_bytes: Bytes, &'a [u8], "The bytes, for a value of bytes.";
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
#[non_exhaustive]
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

impl<'a> Raw<'a> {
    /// The value, with its references resolved.
    #[inline(never)]
    fn view(self, kind: FieldKind, batch: &'a Batch) -> Value<'a> {
        Slot::of(&self).view(FieldType::required(kind), self.payload, batch)
    }

    /// The value, for a kind with elements.
    const fn view_elements(self, kind: FieldKind, batch: &'a Batch) -> Value<'a> {
        let rest = Cursor::new(self.payload, 0);
        let left = self.number;
        match kind {
            FieldKind::List => Value::List(Elements { rest, left, batch }),
            FieldKind::Map => Value::Map(Pairs(Elements { rest, left, batch })),
            _ => Value::TextMap(TextPairs { rest, left }),
        }
    }
}

/// The position of a field's value in its event.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Slot {
    /// The number itself, or the count of the payload's elements.
    pub(super) number: u64,
    /// The start of the payload in the frame; [`Slot::ABSENT`] if there is no value.
    pub(super) start: usize,
}

impl Slot {
    pub(super) const ABSENT: usize = usize::MAX;

    #[inline]
    pub(super) const fn is_absent(self, field_type: FieldType) -> bool {
        field_type.optional && self.start == Self::ABSENT
    }

    /// The number, for a field of unsigned integers.
    #[inline]
    pub(super) const fn unsigned(self, field_type: FieldType) -> Option<u64> {
        if field_type.kind.is_unsigned() && !self.is_absent(field_type) { Some(self.number) } else { None }
    }

    /// The text, for a field of pooled strings.
    #[inline]
    pub(super) fn pooled_text(self, field_type: FieldType, batch: &Batch) -> Option<&str> {
        let is_pooled = matches!(field_type.kind, FieldKind::PooledString) && !self.is_absent(field_type);
        // Ids have four bytes.
        if is_pooled { batch.strings.get(u32::try_from(self.number).ok()?) } else { None }
    }

    /// The value, with its references resolved.
    // Inlined, so that callers that visit all values match on the kind once, not twice.
    #[inline(always)]
    pub(super) fn view<'a>(self, field_type: FieldType, frame: &'a [u8], batch: &'a Batch) -> Value<'a> {
        let kind = field_type.kind;
        if self.is_absent(field_type) {
            return Value::Absent;
        }
        // Most values are numbers; testing for them first is cheaper than a jump table.
        if kind.is_unsigned() {
            return Value::Unsigned(self.number);
        }
        // Ids have four bytes, so nothing is truncated here.
        let id = u32::try_from(self.number).unwrap_or(u32::MAX);
        match kind {
            FieldKind::String => Value::Text(self.payload(frame, 1)),
            FieldKind::Bytes => Value::Bytes(self.payload(frame, 1)),
            FieldKind::Stack => Value::Stack(Stack(self.payload(frame, 8).as_chunks().0)),
            FieldKind::PooledString => Value::PooledText { id, text: batch.strings.get(id) },
            FieldKind::PooledStack => Value::PooledStack { id, stack: batch.stacks.get(id).map(Stack) },
            FieldKind::Bool => Value::Bool(self.number != 0),
            FieldKind::I64 => Value::Signed(self.number.cast_signed()),
            FieldKind::F64 => Value::Float(f64::from_bits(self.number)),
            _ => self.view_elements(kind, frame, batch),
        }
    }

    /// A value with elements: the payload ends with the last of them.
    #[cold]
    fn view_elements<'a>(self, kind: FieldKind, frame: &'a [u8], batch: &'a Batch) -> Value<'a> {
        let payload = frame.get(self.start..).unwrap_or_default();
        Raw { number: self.number, payload }.view_elements(kind, batch)
    }

    /// The range of the payload of text or bytes in the frame.
    pub(super) fn payload_range(self, field_type: FieldType) -> Option<Range<usize>> {
        let has_payload = matches!(field_type.kind, FieldKind::String | FieldKind::Bytes);
        let end = || self.start.checked_add(usize::try_from(self.number).ok()?);
        if has_payload && !self.is_absent(field_type) { Some(self.start..end()?) } else { None }
    }

    /// The slot of a single value, whose payload begins at 0.
    const fn of(raw: &Raw<'_>) -> Self {
        Self { number: raw.number, start: 0 }
    }

    /// The payload: a number of units of `unit_bytes`.
    #[inline]
    fn payload(self, frame: &[u8], unit_bytes: usize) -> &[u8] {
        // It was present when the event was read.
        let len = usize::try_from(self.number).unwrap_or_default().wrapping_mul(unit_bytes);
        frame.get(self.start..self.start.wrapping_add(len)).unwrap_or_default()
    }
}
