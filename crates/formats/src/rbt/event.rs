//! One event: its framing and its decoded payload.
//!
//! This is the only decoder of events. It borrows from its input and allocates nothing.

use borehole_wire::{Cursor, Error, ErrorKind};

use super::layout::{EventType, FRAME_HAS_OPCODE, FRAME_NATIVE};

/// An event with an undecoded payload.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct RawEvent<'a> {
    /// The type byte.
    pub type_byte: u8,
    /// The offset of the type byte, in bytes after decompression.
    pub offset: u64,
    /// The payload; empty for the two types without one.
    pub payload: Cursor<'a>,
    /// The value of the two types without a payload: a stack id or a count.
    pub value: i64,
}

/// The outline of an event at the start of some bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Framed {
    pub(crate) type_byte: u8,
    pub(crate) value: i64,
    /// The start of the payload, relative to the type byte.
    pub(crate) payload: usize,
    /// The end of the event, relative to the type byte.
    pub(crate) end: usize,
}

/// The reason why some bytes do not start with a complete event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unframed {
    /// The bytes end too early: at least `missing` more are needed.
    Short { missing: usize },
    /// The payload is longer than the limit.
    TooLong { length: u64 },
}

impl Framed {
    /// The event at the start of `bytes`.
    pub(crate) fn of(bytes: &[u8], max_payload: usize) -> Result<Self, Unframed> {
        let mut cursor = Cursor::new(bytes, 0);
        let RawEvent { type_byte, value, payload, .. } = RawEvent::read(&mut cursor, max_payload)?;
        let end = bytes.len() - cursor.rest().len();
        Ok(Self { type_byte, value, payload: end - payload.rest().len(), end })
    }

    /// The event at the start of `bytes`, whatever its length: its end may lie beyond them.
    pub(crate) fn head_of(bytes: &[u8]) -> Option<Self> {
        let mut cursor = Cursor::new(bytes, 0);
        let type_byte = cursor.u8().ok()?;
        let length = cursor.varint_wrapping().ok()?;
        let payload = bytes.len() - cursor.rest().len();
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        Some(Self { type_byte, value: 0, payload, end: payload.saturating_add(length) })
    }
}

#[cold]
fn short(error: Error) -> Unframed {
    match error.kind() {
        ErrorKind::Truncated { missing } => Unframed::Short { missing },
        _ => Unframed::Short { missing: 1 },
    }
}

impl<'a> RawEvent<'a> {
    /// The event at the start of `bytes`.
    ///
    /// A length whose sign bit is set counts as 0, as in reli.
    #[expect(
        clippy::inline_always,
        reason = "answered through memory, an event costs half of what a sample does"
    )]
    #[inline(always)]
    pub(crate) fn read(bytes: &mut Cursor<'a>, max_payload: usize) -> Result<Self, Unframed> {
        let offset = bytes.offset();
        let type_byte = bytes.u8().map_err(short)?;
        let number = bytes.varint_wrapping().map_err(short)?;
        let payload_offset = bytes.offset();
        if type_byte == EventType::CompactSample as u8 || type_byte == EventType::RepeatSample as u8 {
            let (value, payload) = (number.cast_signed(), Cursor::new(&[], payload_offset));
            return Ok(Self { type_byte, offset, payload, value });
        }
        let length = usize::try_from(number.cast_signed().max(0)).unwrap_or(usize::MAX);
        if length > max_payload {
            return Err(Unframed::TooLong { length: number });
        }
        let payload = Cursor::new(bytes.bytes(length).map_err(short)?, payload_offset);
        Ok(Self { type_byte, offset, payload, value: 0 })
    }

    /// The event that `framed` outlines at the start of `bytes`, which are at `offset`.
    #[inline]
    pub(crate) fn new(bytes: &'a [u8], offset: u64, framed: Framed) -> Self {
        let Framed { type_byte, value, payload, end } = framed;
        let payload = Cursor::new(&bytes[payload..end], offset + payload as u64);
        Self { type_byte, offset, payload, value }
    }

    /// The type; `None` if it is unknown.
    #[inline]
    #[must_use]
    pub const fn event_type(&self) -> Option<EventType> {
        EventType::from_byte(self.type_byte)
    }
}

/// A decoded event.
///
/// Ids are signed 64-bit numbers here, because files may hold any: reli keeps them in maps.
#[derive(Clone, Copy, Debug)]
pub enum DecodedEvent<'a> {
    /// Assigns an id to a string.
    StringDef {
        /// The id.
        id: i64,
        /// The string, usually but not necessarily UTF-8.
        string: &'a [u8],
    },
    /// Assigns an id to a frame.
    FrameDef {
        /// The id.
        id: i64,
        /// The frame.
        frame: FrameFields,
    },
    /// Assigns an id to a stack.
    StackDef {
        /// The id.
        id: i64,
        /// The ids of its frames.
        frames_leaf_first: Varints<'a>,
    },
    /// A sample of any of the three types.
    Sample {
        /// The stack.
        stack: i64,
        /// The process, for a `PID_SAMPLE`.
        pid: Option<i64>,
        /// Microseconds since the previous sample; `None` if the segment or the event has no time.
        delta_us: Option<i64>,
    },
    /// Repeats the last completed sample.
    Repeat {
        /// The number of repeats; 0 and negative numbers mean none.
        count: i64,
    },
    /// The keys and values of the preceding sample.
    Annotation {
        /// String ids: key, value, key, value, …
        pairs: Varints<'a>,
    },
    /// The numbers of the writer's definitions and samples so far in this segment.
    Checkpoint {
        /// Frames, stacks and samples; `None` if the payload is not three numbers.
        counts: Option<[i64; 3]>,
    },
    /// The clean end of a segment.
    SegmentEnd,
    /// A fact about the segment.
    Metadata {
        /// The key.
        key: &'a [u8],
        /// The value, cut if its length exceeds the payload, as in reli.
        value: &'a [u8],
    },
    /// An event of an unknown type.
    Unknown {
        /// The type byte.
        type_byte: u8,
    },
}

/// The definition of a frame, with its strings as ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameFields {
    /// A PHP frame.
    Php {
        /// The namespace.
        namespace: i64,
        /// The class.
        class: i64,
        /// The method or function.
        method: i64,
        /// The file.
        file: i64,
        /// The line; -1 if unknown.
        line: i64,
        /// The opcode, if the frame has one.
        opcode: Option<i64>,
    },
    /// A native frame.
    Native {
        /// The symbol.
        symbol: i64,
        /// The executable or library.
        module: i64,
        /// Bytes from the start of the symbol.
        offset: i64,
    },
}

/// The fields of a sample of any of the three types.
#[derive(Clone, Copy, Debug)]
pub(super) struct SampleFields {
    pub(super) stack: i64,
    pub(super) pid: Option<i64>,
    pub(super) delta_us: Option<i64>,
}

impl SampleFields {
    /// The fields of `raw`, if it is a sample and its payload holds nothing else.
    #[expect(clippy::inline_always, reason = "every sample of a file passes here, in registers if in line")]
    #[inline(always)]
    pub(super) fn of(raw: &RawEvent<'_>, has_timestamps: bool) -> Option<Self> {
        let mut payload = raw.payload;
        if !EventType::is_sample(raw.type_byte) {
            return None;
        }
        let fields = Self::decode(raw, &mut payload, has_timestamps).ok()?;
        payload.is_empty().then_some(fields)
    }

    #[expect(clippy::inline_always, reason = "every sample of a file passes here, in registers if in line")]
    #[inline(always)]
    fn decode(raw: &RawEvent<'_>, payload: &mut Cursor<'_>, has_timestamps: bool) -> Result<Self, Error> {
        if raw.type_byte == EventType::CompactSample as u8 {
            return Ok(Self { stack: raw.value, pid: None, delta_us: None });
        }
        let stack = signed(payload)?;
        let pid = if raw.type_byte == EventType::PidSample as u8 { Some(signed(payload)?) } else { None };
        Ok(Self { stack, pid, delta_us: delta(payload, has_timestamps)? })
    }
}

impl<'a> DecodedEvent<'a> {
    /// Decodes `raw`. Payload bytes after the fields of its type are ignored.
    ///
    /// # Errors
    /// If the payload ends too early.
    #[inline]
    pub fn decode(raw: &RawEvent<'a>, has_timestamps: bool) -> Result<Self, Error> {
        let mut payload = raw.payload;
        Self::decode_payload(raw, &mut payload, has_timestamps)
    }

    #[inline]
    pub(crate) fn decode_payload(
        raw: &RawEvent<'a>,
        payload: &mut Cursor<'a>,
        has_timestamps: bool,
    ) -> Result<Self, Error> {
        Ok(match raw.event_type() {
            Some(EventType::CompactSample | EventType::Sample | EventType::PidSample) => {
                let SampleFields { stack, pid, delta_us } =
                    SampleFields::decode(raw, payload, has_timestamps)?;
                Self::Sample { stack, pid, delta_us }
            }
            Some(EventType::RepeatSample) => Self::Repeat { count: raw.value },
            Some(EventType::StringDef) => {
                let id = signed(payload)?;
                let string = payload.rest();
                *payload = Cursor::new(&[], payload.offset());
                Self::StringDef { id, string }
            }
            Some(EventType::FrameDef) => Self::FrameDef { id: signed(payload)?, frame: frame(payload)? },
            Some(EventType::StackDef) => {
                let (id, depth) = (signed(payload)?, signed(payload)?);
                Self::StackDef { id, frames_leaf_first: Varints::take(payload, depth)? }
            }
            Some(EventType::SampleAnnotation) => {
                let count = signed(payload)?;
                Self::Annotation { pairs: Varints::take(payload, count.saturating_mul(2))? }
            }
            Some(EventType::Checkpoint) => Self::Checkpoint { counts: checkpoint(payload) },
            Some(EventType::SegmentEnd) => Self::SegmentEnd,
            Some(EventType::Metadata) => metadata(payload)?,
            None => Self::Unknown { type_byte: raw.type_byte },
        })
    }
}

#[inline]
fn signed(payload: &mut Cursor<'_>) -> Result<i64, Error> {
    payload.varint_wrapping().map(u64::cast_signed)
}

/// The time since the previous sample. A sample of a segment with timestamps may still lack it.
#[inline]
fn delta(payload: &mut Cursor<'_>, has_timestamps: bool) -> Result<Option<i64>, Error> {
    if has_timestamps && !payload.is_empty() { signed(payload).map(Some) } else { Ok(None) }
}

fn frame(payload: &mut Cursor<'_>) -> Result<FrameFields, Error> {
    let flags = payload.varint_wrapping()?;
    if flags & FRAME_NATIVE != 0 {
        let (symbol, module, offset) = (signed(payload)?, signed(payload)?, signed(payload)?);
        return Ok(FrameFields::Native { symbol, module, offset });
    }
    let (namespace, class, method) = (signed(payload)?, signed(payload)?, signed(payload)?);
    let (file, line) = (signed(payload)?, signed(payload)?);
    // The flag may be set without an id after it: then there is no opcode.
    let has_opcode = flags & FRAME_HAS_OPCODE != 0 && !payload.is_empty();
    let opcode = if has_opcode { Some(signed(payload)?) } else { None };
    Ok(FrameFields::Php { namespace, class, method, file, line, opcode })
}

fn checkpoint(payload: &mut Cursor<'_>) -> Option<[i64; 3]> {
    let counts = [signed(payload).ok()?, signed(payload).ok()?, signed(payload).ok()?];
    Some(counts)
}

fn metadata<'a>(payload: &mut Cursor<'a>) -> Result<DecodedEvent<'a>, Error> {
    let key = sized(payload)?;
    let length = usize::try_from(signed(payload)?.max(0)).unwrap_or(usize::MAX);
    let value = payload.bytes(length.min(payload.rest().len()))?;
    Ok(DecodedEvent::Metadata { key, value })
}

fn sized<'a>(payload: &mut Cursor<'a>) -> Result<&'a [u8], Error> {
    let length = usize::try_from(signed(payload)?.max(0)).unwrap_or(usize::MAX);
    payload.bytes(length)
}

/// A list of varints that is known to be complete.
#[derive(Clone, Copy, Debug)]
pub struct Varints<'a> {
    cursor: Cursor<'a>,
    left: usize,
}

impl<'a> Varints<'a> {
    /// Takes `count` varints from the start of `payload`; none for a negative count.
    fn take(payload: &mut Cursor<'a>, count: i64) -> Result<Self, Error> {
        let left = usize::try_from(count.max(0)).unwrap_or(usize::MAX);
        let start = *payload;
        // Usually the list is the whole rest, and its numbers are counted by their last bytes, many at a time.
        if start.rest().iter().filter(|byte| **byte < 0x80).count() == left
            && start.rest().last().is_none_or(|byte| *byte < 0x80)
        {
            payload.bytes(start.rest().len())?;
            return Ok(Self { cursor: start, left });
        }
        for _ in 0..left {
            payload.varint_wrapping()?;
        }
        let (list, _) = start.rest().split_at(start.rest().len() - payload.rest().len());
        Ok(Self { cursor: Cursor::new(list, start.offset()), left })
    }

    /// The remaining varints as encoded bytes.
    pub(super) const fn bytes(&self) -> &'a [u8] {
        self.cursor.rest()
    }

    /// The number of varints left.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.left
    }

    /// Whether there are no varints left.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.left == 0
    }
}

impl Iterator for Varints<'_> {
    type Item = i64;

    #[inline]
    fn next(&mut self) -> Option<i64> {
        self.left = self.left.checked_sub(1)?;
        signed(&mut self.cursor).ok()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for Varints<'_> {}
