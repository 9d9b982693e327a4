//! One frame: the only decoder there is.
//!
//! [`Outline::read`] checks a frame to its last byte and changes nothing; what the frame defines is then put
//! into the batch by [`Outline::apply`]. So a frame that is cut off, or that a search tries out, leaves no
//! trace.

use borehole_wire::Cursor;

use super::batch::{Batch, Row};
use super::fault::{Fault, What};
use super::layout::{FieldKind, FieldType, HEADER_BYTES, HEADER_TAG, MAGIC, Tag, VERSION};
use super::schema::{Annotation, Definition, Field};
use super::value::{Raw, Value, prefixed, stack_bytes, varint};

/// A frame that was read: how long it is, and what it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outline {
    pub(super) len: usize,
    pub(super) kind: Kind,
}

/// What a frame is. What it says beyond that stands in its bytes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    Header { version: u8 },
    Schema,
    Event { row: u32, timestamp_ns: Option<u64> },
    Strings,
    Stacks,
    Reset { timestamp_ns: u64 },
    Annotations,
}

/// Where the value of a field stands in its event.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    /// The number itself, or the count of what the payload holds.
    number: u64,
    /// Where the payload starts in the frame; [`Slot::ABSENT`] where there is no value.
    start: usize,
    len: usize,
}

impl Slot {
    const ABSENT: usize = usize::MAX;

    #[inline]
    pub(super) const fn is_absent(self) -> bool {
        self.start == Self::ABSENT
    }

    /// The number, of a field of unsigned integers.
    #[inline]
    pub(super) const fn unsigned(self, field_type: FieldType) -> Option<u64> {
        let is_unsigned =
            matches!(field_type.kind, FieldKind::Varint | FieldKind::U8 | FieldKind::U16 | FieldKind::U32);
        if is_unsigned && !self.is_absent() { Some(self.number) } else { None }
    }

    /// The text, of a field of pooled strings.
    #[inline]
    pub(super) fn pooled_text(self, field_type: FieldType, batch: &Batch) -> Option<&str> {
        let is_pooled = matches!(field_type.kind, FieldKind::PooledString) && !self.is_absent();
        // Ids have four bytes.
        if is_pooled { batch.strings.get(u32::try_from(self.number).ok()?) } else { None }
    }

    #[inline]
    pub(super) fn view<'a>(self, field_type: FieldType, frame: &'a [u8], batch: &'a Batch) -> Value<'a> {
        if self.is_absent() {
            return Value::Absent;
        }
        let payload = frame.get(self.start..self.start + self.len).unwrap_or_default();
        Raw { number: self.number, payload }.view(field_type.kind, batch)
    }
}

impl Outline {
    /// The frame at the start of `bytes`, in the middle of `batch`. The values of an event go into `slots`.
    #[inline]
    pub(super) fn read(bytes: &[u8], batch: &Batch, slots: &mut Vec<Slot>) -> Result<Self, Fault> {
        let mut cursor = Cursor::new(bytes, 0);
        let byte = cursor.u8()?;
        let kind = if byte == Tag::Event as u8 {
            event(&mut cursor, bytes, batch, slots)?
        } else {
            rare(byte, &mut cursor, batch)?
        };
        Ok(Self { len: bytes.len() - cursor.rest().len(), kind })
    }

    /// The header that has to stand at the start of `bytes`.
    pub(super) fn header(bytes: &[u8]) -> Result<Self, Fault> {
        let mut cursor = Cursor::new(bytes, 0);
        let found: [u8; 4] = cursor.array().map_err(|error| match MAGIC.starts_with(bytes) {
            true => Fault::from(error),
            false => not_magic(bytes),
        })?;
        if found != MAGIC {
            return Err(not_magic(bytes));
        }
        Ok(Self { len: HEADER_BYTES, kind: Kind::Header { version: cursor.u8()? } })
    }

    /// Puts into `batch` what the frame says. Answers what was odd about it.
    #[inline]
    pub(super) fn apply(self, frame: &[u8], batch: &mut Batch) -> Result<Option<Oddity>, Fault> {
        match self.kind {
            Kind::Event { timestamp_ns, .. } => {
                if let Some(timestamp_ns) = timestamp_ns {
                    batch.base_ns = timestamp_ns;
                }
                Ok(None)
            }
            Kind::Reset { timestamp_ns } => {
                batch.base_ns = timestamp_ns;
                Ok(None)
            }
            Kind::Header { version } => {
                batch.clear();
                Ok((version != VERSION).then_some(Oddity::Version(version)))
            }
            kind => define(kind, frame, batch),
        }
    }
}

/// Something odd in a frame, which was read all the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Oddity {
    /// A header of another version behind the first.
    Version(u8),
    /// An entry of the string pool that is not UTF-8: it does not count.
    Entry(u32),
}

#[inline]
fn event(cursor: &mut Cursor<'_>, bytes: &[u8], batch: &Batch, slots: &mut Vec<Slot>) -> Result<Kind, Fault> {
    let at = cursor.offset();
    let type_id = cursor.u16_le()?;
    let Some((row, known)) = batch.find(type_id) else {
        return Err(Fault { at, what: What::UnknownType(type_id) });
    };
    let timestamp_ns = if known.has_timestamp { Some(timestamp(cursor, batch)?) } else { None };
    slots.clear();
    values(cursor, bytes, known, slots)?;
    Ok(Kind::Event { row, timestamp_ns })
}

#[inline]
fn timestamp(cursor: &mut Cursor<'_>, batch: &Batch) -> Result<u64, Fault> {
    let at = cursor.offset();
    let [low, middle, high] = cursor.array()?;
    let delta_ns = u64::from(u32::from_le_bytes([low, middle, high, 0]));
    let base_ns = batch.base_ns;
    base_ns.checked_add(delta_ns).ok_or(Fault { at, what: What::Time { base_ns, delta_ns } })
}

#[inline]
fn values(cursor: &mut Cursor<'_>, bytes: &[u8], row: &Row, slots: &mut Vec<Slot>) -> Result<(), Fault> {
    for field_type in &row.types {
        if field_type.optional && cursor.u8()? == 0 {
            slots.push(Slot { number: 0, start: Slot::ABSENT, len: 0 });
            continue;
        }
        let Raw { number, payload } = Raw::read(field_type.kind, cursor)?;
        let start = bytes.len() - cursor.rest().len() - payload.len();
        slots.push(Slot { number, start, len: payload.len() });
    }
    Ok(())
}

/// A frame that is not an event, of which there are few.
#[cold]
fn rare(byte: u8, cursor: &mut Cursor<'_>, batch: &Batch) -> Result<Kind, Fault> {
    match Tag::from_byte(byte) {
        None if byte == HEADER_TAG => mid_header(cursor),
        None => Err(Fault { at: 0, what: What::Tag(byte) }),
        Some(Tag::Event) => Err(Fault { at: 0, what: What::Tag(byte) }),
        Some(Tag::Schema) => {
            let (type_id, definition) = schema(cursor)?;
            match batch.find(type_id) {
                Some((_, known)) if !known.schema.defines_the_same(&definition) => {
                    Err(Fault { at: 1, what: What::Conflict(type_id) })
                }
                _ => Ok(Kind::Schema),
            }
        }
        Some(Tag::Strings) => pool_entries(cursor, prefixed).map(|()| Kind::Strings),
        Some(Tag::Stacks) => pool_entries(cursor, addresses).map(|()| Kind::Stacks),
        Some(Tag::Reset) => Ok(Kind::Reset { timestamp_ns: cursor.u64_le()? }),
        Some(Tag::Annotations) => annotations(cursor).map(|_| Kind::Annotations),
    }
}

/// A header where a frame may stand; without the whole magic it is a frame of an unknown sort.
fn mid_header(cursor: &mut Cursor<'_>) -> Result<Kind, Fault> {
    let rest = cursor.rest();
    if !MAGIC[1..].starts_with(&rest[..rest.len().min(MAGIC.len() - 1)]) {
        return Err(Fault { at: 0, what: What::Tag(HEADER_TAG) });
    }
    cursor.bytes(MAGIC.len() - 1)?;
    Ok(Kind::Header { version: cursor.u8()? })
}

fn not_magic(bytes: &[u8]) -> Fault {
    let mut found = [0; 4];
    found.iter_mut().zip(bytes).for_each(|(found, byte)| *found = *byte);
    Fault { at: 0, what: What::Magic { found } }
}

/// Carries out a frame that defines something. It was read before, so that it cannot be at fault now.
#[cold]
fn define(kind: Kind, frame: &[u8], batch: &mut Batch) -> Result<Option<Oddity>, Fault> {
    let mut cursor = Cursor::new(frame, 0);
    cursor.u8()?;
    match kind {
        Kind::Schema => {
            let (type_id, definition) = schema(&mut cursor)?;
            let conflict = |_| Fault { at: 1, what: What::Conflict(type_id) };
            batch.count_type(frame.len());
            batch.register(type_id, definition).map_err(conflict)?;
        }
        Kind::Annotations => {
            let (type_id, annotations) = annotations(&mut cursor)?;
            batch.count_type(frame.len());
            if let Ok(type_id) = u16::try_from(type_id) {
                batch.annotate(type_id, annotations);
            }
        }
        Kind::Strings => return define_strings(&mut cursor, batch),
        Kind::Stacks => {
            for _ in 0..cursor.u32_le()? {
                let id = cursor.u32_le()?;
                batch.stacks.define(id, addresses(&mut cursor)?.as_chunks().0);
            }
        }
        Kind::Header { .. } | Kind::Event { .. } | Kind::Reset { .. } => {}
    }
    Ok(None)
}

/// An entry that is not UTF-8 leaves its id as it was.
///
/// Source: `dial9-trace-format` 0.5.4; `utf8_pool.bin`, `utf8_pool_redefine.bin`.
fn define_strings(cursor: &mut Cursor<'_>, batch: &mut Batch) -> Result<Option<Oddity>, Fault> {
    let mut oddity = None;
    for _ in 0..cursor.u32_le()? {
        let id = cursor.u32_le()?;
        match std::str::from_utf8(prefixed(cursor)?) {
            Ok(string) => batch.strings.define(id, string),
            Err(_) => oddity = Some(Oddity::Entry(id)),
        }
    }
    Ok(oddity)
}

/// Reads the entries of a pool to their end.
fn pool_entries<'a>(
    cursor: &mut Cursor<'a>,
    entry: impl Fn(&mut Cursor<'a>) -> Result<&'a [u8], Fault>,
) -> Result<(), Fault> {
    for _ in 0..cursor.u32_le()? {
        cursor.u32_le()?;
        entry(cursor)?;
    }
    Ok(())
}

/// The bytes of addresses behind their count.
pub(super) fn addresses<'a>(cursor: &mut Cursor<'a>) -> Result<&'a [u8], Fault> {
    let count = cursor.u32_le()?;
    Ok(cursor.bytes(stack_bytes(count))?)
}

/// A schema frame behind its tag.
pub(super) fn schema(cursor: &mut Cursor<'_>) -> Result<(u16, Definition), Fault> {
    let type_id = cursor.u16_le()?;
    let name = name(cursor, "event name")?;
    let has_timestamp = cursor.u8()? != 0;
    let mut fields = Vec::new();
    for _ in 0..cursor.u16_le()? {
        let name = self::name(cursor, "field name")?;
        let at = cursor.offset();
        let byte = cursor.u8()?;
        let field_type = FieldType::from_byte(byte).ok_or(Fault { at, what: What::FieldType(byte) })?;
        fields.push(Field { name, field_type });
    }
    Ok((type_id, Definition { name, has_timestamp, fields, annotations: Vec::new() }))
}

/// A frame of annotations behind its tag. The type id may be larger than any there is.
pub(super) fn annotations(cursor: &mut Cursor<'_>) -> Result<(u64, Vec<Annotation>), Fault> {
    let type_id = varint(cursor)?;
    let mut annotations = Vec::new();
    for _ in 0..cursor.u16_le()? {
        let field = cursor.u16_le()?;
        let key = name(cursor, "annotation key")?;
        let at = cursor.offset();
        let value = text(prefixed(cursor)?, at, "annotation value")?;
        annotations.push(Annotation { field, key, value });
    }
    Ok((type_id, annotations))
}

/// A name behind its length of two bytes.
fn name(cursor: &mut Cursor<'_>, what: &'static str) -> Result<String, Fault> {
    let at = cursor.offset();
    let len = cursor.u16_le()?;
    text(cursor.bytes(usize::from(len))?, at, what)
}

fn text(bytes: &[u8], at: u64, what: &'static str) -> Result<String, Fault> {
    let text = std::str::from_utf8(bytes).map_err(|_| Fault { at, what: What::Utf8(what) })?;
    Ok(text.to_owned())
}
