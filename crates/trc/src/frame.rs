//! Decodes one frame. This is the only decoder of frames.
//!
//! [`FrameOutline::read`] checks a frame to its last byte without side effects; [`FrameOutline::apply`] then adds its
//! definitions to the batch. So a frame that is cut off, or that a search tries, leaves no trace.

use borehole_text::counted;
use borehole_wire::Cursor;

use super::batch::{Batch, BatchType, MAX_ANNOTATION_FRAMES};
use super::fault::{FaultKind, FrameFault};
use super::layout::{
    FieldKind, FieldType, FrameTag, HEADER_BYTES, HEADER_TAG, MAGIC, TIMED_HEAD_BYTES, UNTIMED_HEAD_BYTES,
    VERSION,
};
use super::raw::{Raw, prefixed, short_varint, stack_bytes, varint};
use super::schema::{Annotation, Definition, Field};
use super::value::Slot;

/// The outline of a frame: its length and kind.
#[derive(Clone, Copy, Debug)]
pub(super) struct FrameOutline {
    pub(super) len: usize,
    pub(super) kind: FrameKind,
}

/// The kind of a frame. Its other contents stay in its bytes.
#[derive(Clone, Copy, Debug)]
pub(super) enum FrameKind {
    Header { version: u8 },
    Schema,
    Event { row: u32, timestamp_ns: Option<u64> },
    Strings,
    Stacks,
    Reset { timestamp_ns: u64 },
    Annotations,
}

impl FrameOutline {
    /// Reads the frame at the start of `bytes`, in the middle of `batch`. The values of an event go into `slots`.
    pub(super) fn read(bytes: &[u8], batch: &Batch, slots: &mut Vec<Slot>) -> Result<Self, FrameFault> {
        if Self::is_event(bytes) {
            let Found { row_index: row, timestamp_ns, len, .. } = event(bytes, batch, batch.base_ns, slots)?;
            return Ok(Self { len, kind: FrameKind::Event { row, timestamp_ns } });
        }
        let mut cursor = Cursor::new(bytes, 0);
        let byte = cursor.u8()?;
        let kind = rare(byte, &mut cursor, batch)?;
        Ok(Self { len: bytes.len() - cursor.rest().len(), kind })
    }

    /// Whether an event begins here.
    #[inline]
    pub(super) fn is_event(bytes: &[u8]) -> bool {
        bytes.first() == Some(&(FrameTag::Event as u8))
    }

    /// Reads the required header at the start of `bytes`.
    pub(super) fn header(bytes: &[u8]) -> Result<Self, FrameFault> {
        let mut cursor = Cursor::new(bytes, 0);
        let found: [u8; 4] = cursor.array().map_err(|error| match MAGIC.starts_with(bytes) {
            true => FrameFault::from(error),
            false => not_magic(bytes),
        })?;
        if found != MAGIC {
            return Err(not_magic(bytes));
        }
        Ok(Self { len: HEADER_BYTES, kind: FrameKind::Header { version: cursor.u8()? } })
    }

    /// Applies a frame that is not an event to `batch`. Returns an oddity in it.
    pub(super) fn apply(self, frame: &[u8], batch: &mut Batch) -> Result<Option<FrameOddity>, FrameFault> {
        match self.kind {
            FrameKind::Reset { timestamp_ns } => {
                batch.base_ns = timestamp_ns;
                Ok(None)
            }
            FrameKind::Header { version } => {
                batch.clear();
                Ok((version != VERSION).then_some(FrameOddity::Version(version)))
            }
            kind => define(kind, frame, batch),
        }
    }
}

/// An oddity in a frame that was read anyway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FrameOddity {
    /// A header of another version.
    Version(u8),
    /// More annotation frames than a type may have.
    Annotations(u16),
    /// Ignored entries of the string pool that are not UTF-8: the first, and their number.
    Entries { first: u32, count: u32 },
}

impl FrameOddity {
    pub(super) fn message(self) -> String {
        match self {
            Self::Version(found) => {
                format!("unsupported version: expected {VERSION}, found {found}; read as version 1")
            }
            Self::Annotations(type_id) => {
                format!(
                    "too many annotations for type id {type_id}: expected at most {MAX_ANNOTATION_FRAMES} frames in \
                     one batch; the rest is ignored"
                )
            }
            Self::Entries { first, count } => {
                let strings = counted(count.into(), "string");
                format!(
                    "invalid pool: expected UTF-8, found other bytes in {strings}, the first with id {first}; their ids \
                     keep their earlier values"
                )
            }
        }
    }
}

/// An event that was read; its values are in the slots.
pub(super) struct Found<'b> {
    pub(super) row_index: u32,
    pub(super) row: &'b BatchType,
    pub(super) timestamp_ns: Option<u64>,
    pub(super) len: usize,
}

/// Reads an event whose base time is `base_ns`.
// Inlined, so that its result stays in registers: reading spends its time in this loop.
#[inline(always)]
pub(super) fn event<'b>(
    bytes: &[u8],
    batch: &'b Batch,
    base_ns: u64,
    slots: &mut Vec<Slot>,
) -> Result<Found<'b>, FrameFault> {
    let head = match bytes.first_chunk() {
        Some(head) => u64::from_le_bytes(*head),
        None => short_head(bytes)?,
    };
    let [_, low, high, delta_low, delta_middle, delta_high, ..] = head.to_le_bytes();
    let type_id = u16::from_le_bytes([low, high]);
    let Some((row_index, row)) = batch.find(type_id) else {
        return Err(FrameFault { at: 1, what: FaultKind::UnknownType(type_id) });
    };
    let mut at = UNTIMED_HEAD_BYTES;
    let mut timestamp_ns = None;
    if row.has_timestamp {
        if bytes.len() < TIMED_HEAD_BYTES {
            return Err(missing(TIMED_HEAD_BYTES - bytes.len(), at));
        }
        let delta_ns = u64::from(u32::from_le_bytes([delta_low, delta_middle, delta_high, 0]));
        timestamp_ns = Some(moved_on(base_ns, delta_ns)?);
        at = TIMED_HEAD_BYTES;
    }
    let len = values(bytes, at, &row.types, slots)?;
    Ok(Found { row_index, row, timestamp_ns, len })
}

/// The head of an event that is shorter than eight bytes, padded with zeros.
#[cold]
fn short_head(bytes: &[u8]) -> Result<u64, FrameFault> {
    if bytes.len() < UNTIMED_HEAD_BYTES {
        return Err(missing(UNTIMED_HEAD_BYTES - bytes.len(), 1));
    }
    let mut head = [0; 8];
    head.iter_mut().zip(bytes).for_each(|(place, byte)| *place = *byte);
    Ok(u64::from_le_bytes(head))
}

#[inline]
fn moved_on(base_ns: u64, delta_ns: u64) -> Result<u64, FrameFault> {
    let fault = FrameFault { at: UNTIMED_HEAD_BYTES as u64, what: FaultKind::Time { base_ns, delta_ns } };
    base_ns.checked_add(delta_ns).ok_or(fault)
}

/// Reads the values from `at` on into `slots`. Returns their end.
#[inline(always)]
fn values(bytes: &[u8], at: usize, types: &[FieldType], slots: &mut Vec<Slot>) -> Result<usize, FrameFault> {
    if slots.len() < types.len() {
        slots.resize(types.len(), Slot::default());
    }
    let mut rest = bytes.get(at..).unwrap_or_default();
    for (slot, field_type) in slots.iter_mut().zip(types) {
        rest = match at_once(bytes, rest, *field_type, slot) {
            Some(behind) => behind,
            None => by_cursor(bytes, rest, *field_type, slot)?,
        };
    }
    Ok(bytes.len() - rest.len())
}

/// Reads a number from the eight bytes at the start of `rest`, if there are as many, or the payload after a count in
/// them: most values of most traces. Returns the bytes after the value.
// The position of a number is not stored, because it is never used: one store less for most values.
#[inline(always)]
fn at_once<'b>(bytes: &[u8], mut rest: &'b [u8], field_type: FieldType, slot: &mut Slot) -> Option<&'b [u8]> {
    // Most values are required varints: one test for both properties.
    if field_type == FieldType::required(FieldKind::Varint) {
        return varint_at_once(rest, slot);
    }
    if field_type.optional {
        let (presence, behind) = rest.split_first()?;
        slot.start = if *presence == 0 { Slot::ABSENT } else { 0 };
        if *presence == 0 {
            return Some(behind);
        }
        rest = behind;
    }
    if field_type.kind == FieldKind::Varint {
        return varint_at_once(rest, slot);
    }
    let word = u64::from_le_bytes(*rest.first_chunk()?);
    if let Some(width) = field_type.kind.fixed_bytes() {
        slot.number = word & (u64::MAX >> (64 - 8 * width));
        return rest.get(width..);
    }
    let unit_bytes = match field_type.kind {
        FieldKind::String | FieldKind::Bytes => 1,
        FieldKind::Stack => 8,
        _ => return None,
    };
    let count = word & 0xffff_ffff;
    *slot = Slot { number: count, start: bytes.len() - rest.len() + 4 };
    rest.get(4..)?.get(usize::try_from(count * unit_bytes).ok()?..)
}

#[inline(always)]
fn varint_at_once<'b>(rest: &'b [u8], slot: &mut Slot) -> Option<&'b [u8]> {
    let (number, width) = short_varint(u64::from_le_bytes(*rest.first_chunk()?))?;
    slot.number = number;
    rest.get(width..)
}

/// Reads a value of any kind. Returns the bytes after it.
#[cold]
#[inline(never)]
fn by_cursor<'b>(
    bytes: &[u8],
    rest: &'b [u8],
    FieldType { kind, optional }: FieldType,
    slot: &mut Slot,
) -> Result<&'b [u8], FrameFault> {
    let mut cursor = Cursor::new(rest, (bytes.len() - rest.len()) as u64);
    if optional && cursor.u8()? == 0 {
        *slot = Slot { number: 0, start: Slot::ABSENT };
        return Ok(cursor.rest());
    }
    let Raw { number, payload } = Raw::read(kind, &mut cursor)?;
    *slot = Slot { number, start: bytes.len() - cursor.rest().len() - payload.len() };
    Ok(cursor.rest())
}

#[cold]
fn missing(missing: usize, at: usize) -> FrameFault {
    FrameFault { at: at as u64, what: FaultKind::Truncated { missing } }
}

/// Reads a frame that is not an event, of which there are few.
#[cold]
fn rare(byte: u8, cursor: &mut Cursor<'_>, batch: &Batch) -> Result<FrameKind, FrameFault> {
    match FrameTag::from_byte(byte) {
        None if byte == HEADER_TAG => mid_header(cursor),
        None => Err(FrameFault { at: 0, what: FaultKind::FrameTag(byte) }),
        Some(FrameTag::Event) => Err(FrameFault { at: 0, what: FaultKind::FrameTag(byte) }),
        Some(FrameTag::Schema) => {
            let mut again = *cursor;
            let SchemaOutline { type_id, .. } = schema_outline(cursor)?;
            match batch.find(type_id) {
                Some((_, known)) if !defines_again(known.schema.definition(), &mut again)? => {
                    let len = u32::try_from(cursor.offset()).unwrap_or(u32::MAX);
                    Err(FrameFault { at: 1, what: FaultKind::Conflict { type_id, len } })
                }
                _ => Ok(FrameKind::Schema),
            }
        }
        Some(FrameTag::Strings) => pool_entries(cursor, prefixed).map(|()| FrameKind::Strings),
        Some(FrameTag::Stacks) => pool_entries(cursor, addresses).map(|()| FrameKind::Stacks),
        Some(FrameTag::Reset) => Ok(FrameKind::Reset { timestamp_ns: cursor.u64_le()? }),
        Some(FrameTag::Annotations) => annotations_outline(cursor).map(|_| FrameKind::Annotations),
    }
}

/// Reads a header where a frame may be; without the whole magic it is a frame with an unknown tag.
fn mid_header(cursor: &mut Cursor<'_>) -> Result<FrameKind, FrameFault> {
    let rest = cursor.rest();
    if !MAGIC[1..].starts_with(&rest[..rest.len().min(MAGIC.len() - 1)]) {
        return Err(FrameFault { at: 0, what: FaultKind::FrameTag(HEADER_TAG) });
    }
    cursor.bytes(MAGIC.len() - 1)?;
    Ok(FrameKind::Header { version: cursor.u8()? })
}

fn not_magic(bytes: &[u8]) -> FrameFault {
    let mut found = [0; 4];
    found.iter_mut().zip(bytes).for_each(|(found, byte)| *found = *byte);
    FrameFault { at: 0, what: FaultKind::Magic { found } }
}

/// Applies a frame that defines something. It was checked before, so it cannot fail now.
#[cold]
fn define(kind: FrameKind, frame: &[u8], batch: &mut Batch) -> Result<Option<FrameOddity>, FrameFault> {
    let mut cursor = Cursor::new(frame, 0);
    cursor.u8()?;
    match kind {
        FrameKind::Schema => {
            let (type_id, definition) = schema(&mut cursor)?;
            let len = u32::try_from(frame.len()).unwrap_or(u32::MAX);
            let conflict = |_| FrameFault { at: 1, what: FaultKind::Conflict { type_id, len } };
            batch.count_type(frame.len());
            batch.register(type_id, definition).map_err(conflict)?;
        }
        FrameKind::Annotations => {
            let (type_id, annotations) = annotations(&mut cursor)?;
            batch.count_type(frame.len());
            if let Ok(type_id) = u16::try_from(type_id)
                && batch.annotate(type_id, annotations)
            {
                return Ok(Some(FrameOddity::Annotations(type_id)));
            }
        }
        FrameKind::Strings => return define_strings(&mut cursor, batch),
        FrameKind::Stacks => {
            for _ in 0..cursor.u32_le()? {
                let id = cursor.u32_le()?;
                batch.stacks.define(id, addresses(&mut cursor)?.as_chunks().0);
            }
        }
        FrameKind::Header { .. } | FrameKind::Event { .. } | FrameKind::Reset { .. } => {}
    }
    Ok(None)
}

/// Adds strings. An entry that is not UTF-8 leaves its id unchanged.
///
/// Source: `dial9-trace-format` 0.5.4; `utf8_pool.bin`, `utf8_pool_redefine.bin`.
fn define_strings(cursor: &mut Cursor<'_>, batch: &mut Batch) -> Result<Option<FrameOddity>, FrameFault> {
    let (mut first, mut count) = (None, 0);
    for _ in 0..cursor.u32_le()? {
        let id = cursor.u32_le()?;
        match std::str::from_utf8(prefixed(cursor)?) {
            Ok(string) => batch.strings.define(id, string),
            Err(_) => {
                first.get_or_insert(id);
                count += 1;
            }
        }
    }
    Ok(first.map(|first| FrameOddity::Entries { first, count }))
}

/// Reads the entries of a pool to their end.
fn pool_entries<'a>(
    cursor: &mut Cursor<'a>,
    entry: impl Fn(&mut Cursor<'a>) -> Result<&'a [u8], FrameFault>,
) -> Result<(), FrameFault> {
    for _ in 0..cursor.u32_le()? {
        cursor.u32_le()?;
        entry(cursor)?;
    }
    Ok(())
}

/// The bytes of addresses after their count.
pub(super) fn addresses<'a>(cursor: &mut Cursor<'a>) -> Result<&'a [u8], FrameFault> {
    let count = cursor.u32_le()?;
    Ok(cursor.bytes(stack_bytes(count))?)
}

/// Reads a schema frame after its tag.
pub(super) fn schema(cursor: &mut Cursor<'_>) -> Result<(u16, Definition), FrameFault> {
    let type_id = cursor.u16_le()?;
    let name = name(cursor, "event name")?;
    let has_timestamp = cursor.u8()? != 0;
    let mut fields = Vec::new();
    for _ in 0..cursor.u16_le()? {
        let (name, field_type) = field(cursor)?;
        fields.push(Field { name: name.to_owned(), field_type });
    }
    Ok((type_id, Definition { name: name.to_owned(), has_timestamp, fields, annotations: Vec::new() }))
}

/// The properties of a schema frame that a search uses.
pub(super) struct SchemaOutline<'a> {
    pub(super) type_id: u16,
    pub(super) name: &'a str,
}

/// Checks a schema frame after its tag, to its end: like [`schema`], without keeping its contents.
pub(super) fn schema_outline<'a>(cursor: &mut Cursor<'a>) -> Result<SchemaOutline<'a>, FrameFault> {
    let type_id = cursor.u16_le()?;
    let name = name(cursor, "event name")?;
    cursor.u8()?;
    for _ in 0..cursor.u16_le()? {
        field(cursor)?;
    }
    Ok(SchemaOutline { type_id, name })
}

fn field<'a>(cursor: &mut Cursor<'a>) -> Result<(&'a str, FieldType), FrameFault> {
    let name = name(cursor, "field name")?;
    let at = cursor.offset();
    let byte = cursor.u8()?;
    let field_type = FieldType::from_byte(byte).ok_or(FrameFault { at, what: FaultKind::FieldType(byte) })?;
    Ok((name, field_type))
}

/// Whether a schema frame, after its tag, equals `known`: equal parts are not copied.
fn defines_again(known: &Definition, cursor: &mut Cursor<'_>) -> Result<bool, FrameFault> {
    cursor.u16_le()?;
    let is_named = name(cursor, "event name")? == known.name;
    let is_timed = (cursor.u8()? != 0) == known.has_timestamp;
    if !is_named || !is_timed || usize::from(cursor.u16_le()?) != known.fields.len() {
        return Ok(false);
    }
    for own in &known.fields {
        let (name, field_type) = field(cursor)?;
        if own.name != name || own.field_type != field_type {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Reads a frame of annotations after its tag. The type id may exceed the range of type ids.
pub(super) fn annotations(cursor: &mut Cursor<'_>) -> Result<(u64, Vec<Annotation>), FrameFault> {
    let type_id = varint(cursor)?;
    let mut annotations = Vec::new();
    for _ in 0..cursor.u16_le()? {
        let (field, key, value) = annotation(cursor)?;
        annotations.push(Annotation { field, key: key.to_owned(), value: value.to_owned() });
    }
    Ok((type_id, annotations))
}

/// Checks a frame of annotations after its tag, to its end. Returns its type id and the number of annotations.
pub(super) fn annotations_outline(cursor: &mut Cursor<'_>) -> Result<(u64, u16), FrameFault> {
    let type_id = varint(cursor)?;
    let count = cursor.u16_le()?;
    for _ in 0..count {
        annotation(cursor)?;
    }
    Ok((type_id, count))
}

fn annotation<'a>(cursor: &mut Cursor<'a>) -> Result<(u16, &'a str, &'a str), FrameFault> {
    let field = cursor.u16_le()?;
    let key = name(cursor, "annotation key")?;
    let at = cursor.offset();
    let value = text(prefixed(cursor)?, at, "annotation value")?;
    Ok((field, key, value))
}

/// A name after its length of two bytes.
fn name<'a>(cursor: &mut Cursor<'a>, what: &'static str) -> Result<&'a str, FrameFault> {
    let at = cursor.offset();
    let len = cursor.u16_le()?;
    text(cursor.bytes(usize::from(len))?, at, what)
}

fn text<'a>(bytes: &'a [u8], at: u64, what: &'static str) -> Result<&'a str, FrameFault> {
    std::str::from_utf8(bytes).map_err(|error| {
        let looked_at = u32::try_from(error.valid_up_to()).unwrap_or(u32::MAX);
        FrameFault { at, what: FaultKind::Utf8 { what, looked_at } }
    })
}
