//! The numbers of the wire: header, tags, field types, limits.
//!
//! Source, unless another is named: the format's specification, version 1, of `dial9-trace-format` 0.3.2. Additions of
//! later releases are marked with the release; the version in the header stayed 1.

/// The first four bytes of every batch.
pub const MAGIC: [u8; 4] = *b"TRC\0";

/// The only version.
pub const VERSION: u8 = 1;

/// The length of a header.
pub const HEADER_BYTES: usize = 5;

/// An intact header.
pub const HEADER: [u8; HEADER_BYTES] = {
    let [t, r, c, zero] = MAGIC;
    [t, r, c, zero, VERSION]
};

/// The first byte of [`MAGIC`]. In place of a tag it begins a header, and with it another batch.
///
/// Source: `dial9-trace-format` 0.3.2 to 0.5.4, `decoder.rs`; the specification does not mention it, and the recorder
/// relies on it (`v054_raw_batches.bin`).
pub const HEADER_TAG: u8 = MAGIC[0];

/// The longest time since the event before that an event can hold: 24 bits of nanoseconds.
pub const MAX_DELTA_NS: u64 = 0xff_ffff;

/// The length of the tag and type id of an event.
pub const UNTIMED_HEAD_BYTES: usize = 3;

/// The length of the tag and type id of an event, and of the time since the event before.
pub const TIMED_HEAD_BYTES: usize = 6;

/// The bit of a field type for values preceded by a presence byte: 0 for absent, otherwise present.
pub const OPTIONAL: u8 = 0x80;

/// The maximum number of elements of a list or map.
///
/// Source: `dial9-trace-format` 0.5.4, `codec.rs`.
pub const MAX_ELEMENTS: u32 = 1_000_000;

/// The maximum nesting depth of lists and maps, including the outermost.
///
/// Source: `dial9-trace-format` 0.5.4, `codec.rs`; `v054_depth_limit.bin`.
pub const MAX_NESTING: usize = 32;

/// The maximum length of a varint in bytes. Bits of the last byte above the 64th are dropped.
///
/// Source: `dial9-trace-format` 0.5.4; `varint_forms.bin`, `varint_11_bytes.bin`.
pub const MAX_VARINT_BYTES: usize = 10;

/// The type id of the first event type that requests none. Lower ids belong to types with a fixed place.
///
/// Source: `dial9-trace-format` 0.5.4, `encoder.rs`. Releases up to 0.3.2 begin with 0.
pub const FIRST_DYNAMIC_TYPE_ID: u16 = 256;

/// The kinds of frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
#[non_exhaustive]
pub enum FrameTag {
    /// Defines a type of events.
    Schema = 0x01,
    /// An event.
    Event = 0x02,
    /// Defines strings.
    Strings = 0x03,
    /// Defines stacks. Since 0.3.6; before 0.2 the tag had another meaning.
    Stacks = 0x04,
    /// Sets the base time of the next event.
    Reset = 0x05,
    /// Annotates the fields of a type. Since 0.4; before 0.2 the tag had another meaning.
    Annotations = 0x06,
}

impl FrameTag {
    /// All tags, in order of their numbers.
    pub const ALL: &'static [Self] =
        &[Self::Schema, Self::Event, Self::Strings, Self::Stacks, Self::Reset, Self::Annotations];

    /// The tag with this number.
    #[inline]
    #[must_use]
    pub const fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            1..=6 => Some(Self::ALL[byte as usize - 1]),
            _ => None,
        }
    }

    /// The name of the frame.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Schema => "schema",
            Self::Event => "event",
            Self::Strings => "string pool",
            Self::Stacks => "stack pool",
            Self::Reset => "timestamp reset",
            Self::Annotations => "schema annotations",
        }
    }
}

/// The encoding of a value, apart from its presence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum FieldKind {
    /// Eight bytes, two's complement.
    I64 = 1,
    /// Eight bytes, IEEE 754.
    F64 = 2,
    /// One byte: 0 is false, any other value is true.
    Bool = 3,
    /// A length of four bytes, and UTF-8.
    String = 4,
    /// A length of four bytes, and bytes.
    Bytes = 5,
    /// The id of a stack of the pool, four bytes. Since 0.3.6.
    PooledStack = 6,
    /// The id of a string of the pool, four bytes.
    PooledString = 7,
    /// A count of four bytes, and addresses of eight bytes each, the leaf first.
    Stack = 8,
    /// An unsigned varint.
    Varint = 9,
    /// A count of four bytes, and for each pair the length and bytes of the key and of the value.
    StringMap = 10,
    /// One byte.
    U8 = 11,
    /// Two bytes.
    U16 = 12,
    /// Four bytes.
    U32 = 13,
    /// A count of four bytes, and for each element its type and its value. Since 0.4.
    List = 14,
    /// A count of four bytes, and for each pair the type and value of the key and of the value. Since 0.4.
    Map = 15,
}

impl FieldKind {
    /// All kinds, in order of their numbers.
    pub const ALL: &'static [Self] = &[
        Self::I64,
        Self::F64,
        Self::Bool,
        Self::String,
        Self::Bytes,
        Self::PooledStack,
        Self::PooledString,
        Self::Stack,
        Self::Varint,
        Self::StringMap,
        Self::U8,
        Self::U16,
        Self::U32,
        Self::List,
        Self::Map,
    ];

    /// The kind with this number.
    #[inline]
    #[must_use]
    pub const fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            1..=15 => Some(Self::ALL[byte as usize - 1]),
            _ => None,
        }
    }

    /// The length of a value in bytes; `None` if it varies.
    #[inline]
    #[must_use]
    pub const fn fixed_bytes(self) -> Option<usize> {
        /// By number, 0 if it varies.
        const FIXED_BYTES: [u8; 16] = [0, 8, 8, 1, 0, 0, 4, 4, 0, 0, 0, 1, 2, 4, 0, 0];
        match FIXED_BYTES[self as usize & 15] {
            0 => None,
            bytes => Some(bytes as usize),
        }
    }

    /// Whether its values are unsigned integers.
    #[inline]
    #[must_use]
    pub const fn is_unsigned(self) -> bool {
        matches!(self, Self::Varint | Self::U8 | Self::U16 | Self::U32)
    }

    /// The name in the specification.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::I64 => "I64",
            Self::F64 => "F64",
            Self::Bool => "Bool",
            Self::String => "String",
            Self::Bytes => "Bytes",
            Self::PooledStack => "PooledStackFrames",
            Self::PooledString => "PooledString",
            Self::Stack => "StackFrames",
            Self::Varint => "Varint",
            Self::StringMap => "StringMap",
            Self::U8 => "U8",
            Self::U16 => "U16",
            Self::U32 => "U32",
            Self::List => "DynamicList",
            Self::Map => "DynamicMap",
        }
    }
}

/// The type of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FieldType {
    /// The encoding of its values.
    pub kind: FieldKind,
    /// Whether a presence byte precedes each value.
    pub optional: bool,
}

impl FieldType {
    /// A type whose values are always present.
    #[must_use]
    pub const fn required(kind: FieldKind) -> Self {
        Self { kind, optional: false }
    }

    /// A type whose values may be absent.
    #[must_use]
    pub const fn optional(kind: FieldKind) -> Self {
        Self { kind, optional: true }
    }

    /// The type with this number.
    #[must_use]
    pub fn from_byte(byte: u8) -> Option<Self> {
        let kind = FieldKind::from_byte(byte & !OPTIONAL)?;
        Some(Self { kind, optional: byte & OPTIONAL != 0 })
    }

    /// The number of the type.
    #[must_use]
    pub const fn to_byte(self) -> u8 {
        self.kind as u8 | if self.optional { OPTIONAL } else { 0 }
    }
}

/// The readers that must support a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dialect {
    /// Those of dial9 0.4 and newer: all features.
    #[default]
    Newest,
    /// Those that know only the specification of 0.3.2: each event contains its stacks, annotations are omitted, lists
    /// and maps of any values are rejected.
    V032,
}

impl Dialect {
    /// The type id of the first event type that requests none.
    pub(crate) const fn first_type_id(self) -> u16 {
        match self {
            Self::Newest => FIRST_DYNAMIC_TYPE_ID,
            Self::V032 => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_is_the_type_that_has_it() {
        for byte in 0..=255 {
            match FieldType::from_byte(byte) {
                Some(found) => assert_eq!(found.to_byte(), byte),
                None => assert!(!(1..=15).contains(&(byte & 0x7f)), "{byte:#x}"),
            }
            assert_eq!(
                FrameTag::from_byte(byte).map(|tag| tag as u8),
                (1..=6).contains(&byte).then_some(byte)
            );
        }
    }
}
