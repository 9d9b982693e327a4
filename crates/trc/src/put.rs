//! Writes the values of typed events. Their types are right by construction, so only lengths are checked here.

use super::buffer::put_varint;
use super::building::{BatchBuilder, PendingEvent, timed_head};
use super::invalid::{Invalid, count_u32};
use super::layout::{Dialect, FieldKind, FieldType, FrameTag, MAX_VARINT_BYTES, TIMED_HEAD_BYTES};
use super::pools::Pools;
use super::value::{Stack, StackFrames};

/// Takes the values of one event, in the order of its fields.
pub struct FieldWriter<'w> {
    /// The free space after the last value. If a value does not fit, neither it nor later ones are written, and the
    /// event is rebuilt in more space.
    // A slice of its own, so that the position of the next value stays in registers.
    room: &'w mut [u8],
    pools: &'w mut Pools,
    pending: &'w mut PendingEvent,
    dialect: Dialect,
    /// Whether a value did not fit its field. The pending state holds the reason.
    is_refused: bool,
}

/// A type for fields of typed events.
#[diagnostic::on_unimplemented(
    message = "a field of an event cannot be of the type `{Self}`",
    label = "expected an unsigned integer, `i64`, `f64`, `bool`, text, bytes, `StackFrames` or an `Option` of them"
)]
pub trait PutField {
    /// The encoding of its values.
    const TYPE: FieldType;

    /// Writes the value.
    fn put(&self, out: &mut FieldWriter<'_>);
}

/// A type whose values can be stored once per batch.
#[diagnostic::on_unimplemented(
    message = "values of the type `{Self}` have no pool",
    label = "expected text, `StackFrames` or an `Option` of them"
)]
pub trait PutPooled {
    /// The encoding of its values.
    const TYPE: FieldType;

    /// Writes the value.
    fn put_pooled(&self, out: &mut FieldWriter<'_>);
}

impl<'w> FieldWriter<'w> {
    /// Begins an event of a type at a position of the batch's memory.
    #[inline(always)]
    pub(super) fn new(
        batch: &'w mut BatchBuilder,
        at: usize,
        type_id: [u8; 2],
        delta_ns: u64,
        dialect: Dialect,
    ) -> Self {
        let BatchBuilder { buffer, pools, pending, .. } = batch;
        let mut fields = Self { room: buffer.room(at), pools, pending, dialect, is_refused: false };
        fields.put_within(|place| {
            *place = timed_head(type_id, delta_ns);
            TIMED_HEAD_BYTES
        });
        fields
    }

    /// Returns the space left after the last value; `None` if it was too little.
    #[inline(always)]
    pub(super) fn finish(self) -> Result<Option<usize>, Invalid> {
        if self.is_refused {
            return Err(self.pending.take_refusal());
        }
        // The last value may have needed as much, and not had it.
        Ok(Some(self.room.len()).filter(|left| *left >= MAX_VARINT_BYTES))
    }

    // Passes the pending event and not itself, so that the position of the next value stays in a register.
    #[inline(always)]
    fn refuse(&mut self, invalid: Invalid) {
        self.is_refused = true;
        self.pending.refuse(invalid);
    }

    /// Calls `put` with the next `N` bytes; it returns the number of bytes that it used.
    #[inline(always)]
    fn put_within<const N: usize>(&mut self, put: impl FnOnce(&mut [u8; N]) -> usize) {
        let room = std::mem::take(&mut self.room);
        if let Some(place) = room.first_chunk_mut() {
            let taken = put(place);
            self.room = room.get_mut(taken..).unwrap_or_default();
        }
    }

    /// The next `len` bytes, if there is space for them.
    #[inline(always)]
    fn next(&mut self, len: usize) -> Option<&'w mut [u8]> {
        let (next, room) = std::mem::take(&mut self.room).split_at_mut_checked(len)?;
        self.room = room;
        Some(next)
    }

    #[inline(always)]
    fn fixed<const N: usize>(&mut self, bytes: [u8; N]) {
        self.slice(&bytes);
    }

    #[inline(always)]
    fn slice(&mut self, bytes: &[u8]) {
        if let Some(place) = self.next(bytes.len()) {
            place.copy_from_slice(bytes);
        }
    }

    #[inline(always)]
    fn varint(&mut self, value: u64) {
        self.put_within(|place| put_varint(place, value));
    }

    /// Writes a count of four bytes. Returns whether it fits.
    #[inline(always)]
    fn count(&mut self, count: usize) -> bool {
        match count_u32(count) {
            Ok(count) => self.fixed(count.to_le_bytes()),
            Err(invalid) => self.refuse(invalid),
        }
        !self.is_refused
    }

    #[inline(always)]
    fn prefixed(&mut self, bytes: &[u8]) {
        if self.count(bytes.len()) {
            self.slice(bytes);
        }
    }

    /// Writes the id of an entry.
    #[inline(always)]
    fn interned(&mut self, interned: Result<u32, Invalid>) {
        match interned {
            Ok(id) => self.fixed(id.to_le_bytes()),
            Err(invalid) => self.refuse(invalid),
        }
    }

    #[inline(always)]
    fn pooled_text(&mut self, text: &str) {
        let interned = self.pools.intern(FrameTag::Strings, text.as_bytes());
        self.interned(interned);
    }

    #[inline(always)]
    fn stack(&mut self, stack: StackFrames<'_>) {
        if self.count(stack.len()) {
            match stack {
                StackFrames::Stored(Stack(bytes)) => self.slice(bytes.as_flattened()),
                StackFrames::Native(addresses) => self.addresses(addresses),
            }
        }
    }

    #[inline(always)]
    fn addresses(&mut self, addresses: &[u64]) {
        let places = self.next(size_of_val(addresses)).map(<[u8]>::as_chunks_mut);
        let places = places.map(|(places, _)| places).unwrap_or_default();
        places.iter_mut().zip(addresses).for_each(|(place, address)| *place = address.to_le_bytes());
    }

    #[inline(always)]
    fn pooled_stack(&mut self, stack: StackFrames<'_>) {
        if self.dialect == Dialect::V032 {
            return self.stack(stack);
        }
        let interned = self.pools.intern_stack(stack);
        self.interned(interned);
    }
}

/// A type with values of fixed length.
macro_rules! fixed {
    ($($type:ty: $kind:ident),*) => {$(
        impl PutField for $type {
            const TYPE: FieldType = FieldType::required(FieldKind::$kind);

            #[inline(always)]
            fn put(&self, out: &mut FieldWriter<'_>) {
                out.fixed(self.to_le_bytes());
            }
        }
    )*};
}

fixed!(u8: U8, u16: U16, u32: U32, i64: I64, f64: F64);

/// A type that is written as another.
macro_rules! written_as {
    ($($trait:ident::$method:ident, $type:ty: $kind:ident, |$value:ident, $out:ident| $put:expr);* $(;)?) => {$(
        impl $trait for $type {
            const TYPE: FieldType = FieldType::required(FieldKind::$kind);

            #[inline(always)]
            fn $method(&self, $out: &mut FieldWriter<'_>) {
                let $value = self;
                $put
            }
        }
    )*};
}

written_as! {
    PutField::put, bool: Bool, |value, out| out.fixed([u8::from(*value)]);
    PutField::put, u64: Varint, |value, out| out.varint(*value);
    PutField::put, usize: Varint, |value, out| out.varint(*value as u64);
    PutField::put, &str: String, |value, out| out.prefixed(value.as_bytes());
    PutField::put, String: String, |value, out| out.prefixed(value.as_bytes());
    PutField::put, &[u8]: Bytes, |value, out| out.prefixed(value);
    PutField::put, Vec<u8>: Bytes, |value, out| out.prefixed(value);
    PutField::put, StackFrames<'_>: Stack, |value, out| out.stack(*value);
    PutField::put, Vec<u64>: Stack, |value, out| out.stack(value.as_slice().into());
    PutPooled::put_pooled, &str: PooledString, |value, out| out.pooled_text(value);
    PutPooled::put_pooled, String: PooledString, |value, out| out.pooled_text(value);
    PutPooled::put_pooled, StackFrames<'_>: PooledStack, |value, out| out.pooled_stack(*value);
    PutPooled::put_pooled, Vec<u64>: PooledStack, |value, out| out.pooled_stack(value.as_slice().into());
}

impl PutField for Vec<(String, String)> {
    const TYPE: FieldType = FieldType::required(FieldKind::StringMap);

    fn put(&self, out: &mut FieldWriter<'_>) {
        if out.count(self.len()) {
            for text in self.iter().flat_map(|(key, value)| [key, value]) {
                out.prefixed(text.as_bytes());
            }
        }
    }
}

impl<T: PutField> PutField for Option<T> {
    const TYPE: FieldType = optional(T::TYPE);

    #[inline(always)]
    fn put(&self, out: &mut FieldWriter<'_>) {
        out.fixed([u8::from(self.is_some())]);
        if let Some(value) = self {
            value.put(out);
        }
    }
}

impl<T: PutPooled> PutPooled for Option<T> {
    const TYPE: FieldType = optional(T::TYPE);

    #[inline(always)]
    fn put_pooled(&self, out: &mut FieldWriter<'_>) {
        out.fixed([u8::from(self.is_some())]);
        if let Some(value) = self {
            value.put_pooled(out);
        }
    }
}

/// The type of optional values. There is one presence byte, so an option within an option is not possible.
const fn optional(field_type: FieldType) -> FieldType {
    assert!(!field_type.optional, "expected an option of a value, found an option of an option");
    FieldType::optional(field_type.kind)
}
