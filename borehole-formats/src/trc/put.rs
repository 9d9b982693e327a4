//! The values of typed events. Their types are right by construction, so that nothing is checked here but
//! lengths.

use super::layout::{FieldKind, FieldType, Tag};
use super::value::{Stack, StackFrames};
use super::write::{Core, Dialect, Invalid, count_u32};

/// Takes the values of one event, in the order of its fields.
pub struct FieldWriter<'w> {
    core: &'w mut Core,
    /// Where the next value goes.
    at: usize,
    dialect: Dialect,
    /// Whether a value did not fit. The core knows why.
    is_refused: bool,
}

/// A type that fields of typed events can have.
#[diagnostic::on_unimplemented(
    message = "a field of an event cannot be of the type `{Self}`",
    label = "expected an unsigned integer, `i64`, `f64`, `bool`, text, bytes, `StackFrames` or an `Option` of them"
)]
pub trait PutField {
    /// How its values stand on the wire.
    const TYPE: FieldType;

    /// Writes the value.
    fn put(&self, out: &mut FieldWriter<'_>);
}

/// A type whose values can be stored once a batch.
#[diagnostic::on_unimplemented(
    message = "values of the type `{Self}` have no pool",
    label = "expected text, `StackFrames` or an `Option` of them"
)]
pub trait PutPooled {
    /// How its values stand on the wire.
    const TYPE: FieldType;

    /// Writes the value.
    fn put_pooled(&self, out: &mut FieldWriter<'_>);
}

impl<'w> FieldWriter<'w> {
    #[inline(always)]
    pub(super) const fn new(core: &'w mut Core, at: usize, dialect: Dialect) -> Self {
        Self { core, at, dialect, is_refused: false }
    }

    /// Answers where the last value ends.
    #[inline(always)]
    pub(super) fn finish(self) -> Result<usize, Invalid> {
        if self.is_refused { Err(self.core.pending.take_refusal()) } else { Ok(self.at) }
    }

    // It hands over what was put together and not itself, so that where the next value goes stays in a register.
    #[inline(always)]
    fn refuse(&mut self, invalid: Invalid) {
        self.is_refused = true;
        self.core.pending.refuse(invalid);
    }

    #[inline(always)]
    fn fixed<const N: usize>(&mut self, bytes: [u8; N]) {
        self.at = self.core.buffer.put(self.at, bytes);
    }

    #[inline(always)]
    fn varint(&mut self, value: u64) {
        self.at = self.core.buffer.put_varint(self.at, value);
    }

    /// A count of four bytes. Answers whether it fits.
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
            self.at = self.core.buffer.put_slice(self.at, bytes);
        }
    }

    /// The id of an entry, and where values go on behind its definition.
    #[inline(always)]
    fn interned(&mut self, interned: Result<(u32, usize), Invalid>) {
        match interned {
            Ok((id, at)) => self.at = self.core.buffer.put(at, id.to_le_bytes()),
            Err(invalid) => self.refuse(invalid),
        }
    }

    #[inline(always)]
    fn pooled_text(&mut self, text: &str) {
        let interned = self.core.intern(Tag::Strings, text.as_bytes(), self.at);
        self.interned(interned);
    }

    #[inline(always)]
    fn stack(&mut self, stack: StackFrames<'_>) {
        if self.count(stack.len()) {
            match stack {
                StackFrames::Stored(Stack(bytes)) => {
                    self.at = self.core.buffer.put_slice(self.at, bytes.as_flattened());
                }
                StackFrames::Native(addresses) => {
                    self.at = self.core.buffer.put_addresses(self.at, addresses);
                }
            }
        }
    }

    #[inline(always)]
    fn pooled_stack(&mut self, stack: StackFrames<'_>) {
        if self.dialect == Dialect::V032 {
            return self.stack(stack);
        }
        let interned = match stack {
            StackFrames::Stored(Stack(bytes)) => self.core.intern(Tag::Stacks, bytes.as_flattened(), self.at),
            StackFrames::Native(addresses) => self.core.intern_stack(addresses, self.at),
        };
        self.interned(interned);
    }
}

/// A type whose values are so many bytes.
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

/// The type of values that may be absent. There is one byte for that, so that an option in an option is none.
const fn optional(field_type: FieldType) -> FieldType {
    assert!(!field_type.optional, "expected an option of a value, found an option of an option");
    FieldType::optional(field_type.kind)
}
