//! Decodes one frame. This is the only decoder of frames.
//!
//! [`Outline::read`] checks a frame to its last byte without side effects; [`Outline::apply`] then adds its definitions
//! to the batch. So a frame that is cut off, or that a search tries, leaves no trace.

use std::ops::Range;

use borehole_wire::Cursor;

use super::batch::{Batch, Row};
use super::fault::{Fault, What};
use super::layout::{FieldKind, FieldType, HEADER_BYTES, HEADER_TAG, MAGIC, Tag, VERSION};
use super::schema::{Annotation, Definition, Field};
use super::value::{Raw, Stack, Value, prefixed, short_varint, stack_bytes, varint};

/// The outline of a frame: its length and kind.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outline {
    pub(super) len: usize,
    pub(super) kind: Kind,
}

/// The kind of a frame. Its other contents stay in its bytes.
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

/// The position of a field's value in its event.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Slot {
    /// The number itself, or the count of the payload's elements.
    number: u64,
    /// The start of the payload in the frame; [`Slot::ABSENT`] if there is no value.
    start: usize,
}

impl Slot {
    const ABSENT: usize = usize::MAX;

    #[inline]
    pub(super) const fn is_absent(self, field_type: FieldType) -> bool {
        field_type.optional && self.start == Self::ABSENT
    }

    /// The number, for a field of unsigned integers.
    #[inline]
    pub(super) const fn unsigned(self, field_type: FieldType) -> Option<u64> {
        let is_unsigned =
            matches!(field_type.kind, FieldKind::Varint | FieldKind::U8 | FieldKind::U16 | FieldKind::U32);
        if is_unsigned && !self.is_absent(field_type) { Some(self.number) } else { None }
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
    pub(super) const fn of(raw: &Raw<'_>) -> Self {
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

impl Outline {
    /// Reads the frame at the start of `bytes`, in the middle of `batch`. The values of an event go into `slots`.
    pub(super) fn read(bytes: &[u8], batch: &Batch, slots: &mut Vec<Slot>) -> Result<Self, Fault> {
        if Self::is_event(bytes) {
            let Found { row_index: row, timestamp_ns, len, .. } = event(bytes, batch, batch.base_ns, slots)?;
            return Ok(Self { len, kind: Kind::Event { row, timestamp_ns } });
        }
        let mut cursor = Cursor::new(bytes, 0);
        let byte = cursor.u8()?;
        let kind = rare(byte, &mut cursor, batch)?;
        Ok(Self { len: bytes.len() - cursor.rest().len(), kind })
    }

    /// Whether an event begins here.
    #[inline]
    pub(super) fn is_event(bytes: &[u8]) -> bool {
        bytes.first() == Some(&(Tag::Event as u8))
    }

    /// Reads the required header at the start of `bytes`.
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

    /// Applies a frame that is not an event to `batch`. Returns an oddity in it.
    pub(super) fn apply(self, frame: &[u8], batch: &mut Batch) -> Result<Option<Oddity>, Fault> {
        match self.kind {
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

/// An oddity in a frame that was read all the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Oddity {
    /// A header of another version.
    Version(u8),
    /// More annotation frames than a type may have.
    Annotations(u16),
    /// Ignored entries of the string pool that are not UTF-8: the first, and their number.
    Entries { first: u32, count: u32 },
}

/// An event that was read; its values are in the slots.
pub(super) struct Found<'b> {
    pub(super) row_index: u32,
    pub(super) row: &'b Row,
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
) -> Result<Found<'b>, Fault> {
    let head = match bytes.first_chunk() {
        Some(head) => u64::from_le_bytes(*head),
        None => short_head(bytes)?,
    };
    let [_, low, high, delta_low, delta_middle, delta_high, ..] = head.to_le_bytes();
    let type_id = u16::from_le_bytes([low, high]);
    let Some((row_index, row)) = batch.find(type_id) else {
        return Err(Fault { at: 1, what: What::UnknownType(type_id) });
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

/// The length of tag and type id.
const UNTIMED_HEAD_BYTES: usize = 3;

/// The length of tag, type id and the time since the event before.
const TIMED_HEAD_BYTES: usize = 6;

/// The head of an event that is shorter than eight bytes, padded with zeros.
#[cold]
fn short_head(bytes: &[u8]) -> Result<u64, Fault> {
    if bytes.len() < UNTIMED_HEAD_BYTES {
        return Err(missing(UNTIMED_HEAD_BYTES - bytes.len(), 1));
    }
    let mut head = [0; 8];
    head.iter_mut().zip(bytes).for_each(|(place, byte)| *place = *byte);
    Ok(u64::from_le_bytes(head))
}

#[inline]
fn moved_on(base_ns: u64, delta_ns: u64) -> Result<u64, Fault> {
    let fault = Fault { at: UNTIMED_HEAD_BYTES as u64, what: What::Time { base_ns, delta_ns } };
    base_ns.checked_add(delta_ns).ok_or(fault)
}

/// Reads the values from `at` on into `slots`. Returns their end.
#[inline(always)]
fn values(bytes: &[u8], at: usize, types: &[FieldType], slots: &mut Vec<Slot>) -> Result<usize, Fault> {
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
) -> Result<&'b [u8], Fault> {
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
fn missing(missing: usize, at: usize) -> Fault {
    Fault { at: at as u64, what: What::Truncated { missing } }
}

/// Reads a frame that is not an event, of which there are few.
#[cold]
fn rare(byte: u8, cursor: &mut Cursor<'_>, batch: &Batch) -> Result<Kind, Fault> {
    match Tag::from_byte(byte) {
        None if byte == HEADER_TAG => mid_header(cursor),
        None => Err(Fault { at: 0, what: What::Tag(byte) }),
        Some(Tag::Event) => Err(Fault { at: 0, what: What::Tag(byte) }),
        Some(Tag::Schema) => {
            let mut again = *cursor;
            let SchemaOutline { type_id, .. } = schema_outline(cursor)?;
            match batch.find(type_id) {
                Some((_, known)) if !defines_again(known.schema.definition(), &mut again)? => {
                    let len = u32::try_from(cursor.offset()).unwrap_or(u32::MAX);
                    Err(Fault { at: 1, what: What::Conflict { type_id, len } })
                }
                _ => Ok(Kind::Schema),
            }
        }
        Some(Tag::Strings) => pool_entries(cursor, prefixed).map(|()| Kind::Strings),
        Some(Tag::Stacks) => pool_entries(cursor, addresses).map(|()| Kind::Stacks),
        Some(Tag::Reset) => Ok(Kind::Reset { timestamp_ns: cursor.u64_le()? }),
        Some(Tag::Annotations) => annotations_outline(cursor).map(|_| Kind::Annotations),
    }
}

/// Reads a header where a frame may be; without the whole magic it is a frame with an unknown tag.
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

/// Applies a frame that defines something. It was checked before, so it cannot fail now.
#[cold]
fn define(kind: Kind, frame: &[u8], batch: &mut Batch) -> Result<Option<Oddity>, Fault> {
    let mut cursor = Cursor::new(frame, 0);
    cursor.u8()?;
    match kind {
        Kind::Schema => {
            let (type_id, definition) = schema(&mut cursor)?;
            let len = u32::try_from(frame.len()).unwrap_or(u32::MAX);
            let conflict = |_| Fault { at: 1, what: What::Conflict { type_id, len } };
            batch.count_type(frame.len());
            batch.register(type_id, definition).map_err(conflict)?;
        }
        Kind::Annotations => {
            let (type_id, annotations) = annotations(&mut cursor)?;
            batch.count_type(frame.len());
            if let Ok(type_id) = u16::try_from(type_id)
                && batch.annotate(type_id, annotations)
            {
                return Ok(Some(Oddity::Annotations(type_id)));
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

/// Adds strings. An entry that is not UTF-8 leaves its id unchanged.
///
/// Source: `dial9-trace-format` 0.5.4; `utf8_pool.bin`, `utf8_pool_redefine.bin`.
fn define_strings(cursor: &mut Cursor<'_>, batch: &mut Batch) -> Result<Option<Oddity>, Fault> {
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
    Ok(first.map(|first| Oddity::Entries { first, count }))
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

/// The bytes of addresses after their count.
pub(super) fn addresses<'a>(cursor: &mut Cursor<'a>) -> Result<&'a [u8], Fault> {
    let count = cursor.u32_le()?;
    Ok(cursor.bytes(stack_bytes(count))?)
}

/// Reads a schema frame after its tag.
pub(super) fn schema(cursor: &mut Cursor<'_>) -> Result<(u16, Definition), Fault> {
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
pub(super) fn schema_outline<'a>(cursor: &mut Cursor<'a>) -> Result<SchemaOutline<'a>, Fault> {
    let type_id = cursor.u16_le()?;
    let name = name(cursor, "event name")?;
    cursor.u8()?;
    for _ in 0..cursor.u16_le()? {
        field(cursor)?;
    }
    Ok(SchemaOutline { type_id, name })
}

fn field<'a>(cursor: &mut Cursor<'a>) -> Result<(&'a str, FieldType), Fault> {
    let name = name(cursor, "field name")?;
    let at = cursor.offset();
    let byte = cursor.u8()?;
    let field_type = FieldType::from_byte(byte).ok_or(Fault { at, what: What::FieldType(byte) })?;
    Ok((name, field_type))
}

/// Whether a schema frame, after its tag, equals `known`: equal parts are not copied.
fn defines_again(known: &Definition, cursor: &mut Cursor<'_>) -> Result<bool, Fault> {
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
pub(super) fn annotations(cursor: &mut Cursor<'_>) -> Result<(u64, Vec<Annotation>), Fault> {
    let type_id = varint(cursor)?;
    let mut annotations = Vec::new();
    for _ in 0..cursor.u16_le()? {
        let (field, key, value) = annotation(cursor)?;
        annotations.push(Annotation { field, key: key.to_owned(), value: value.to_owned() });
    }
    Ok((type_id, annotations))
}

/// Checks a frame of annotations after its tag, to its end. Returns its type id and the number of annotations.
pub(super) fn annotations_outline(cursor: &mut Cursor<'_>) -> Result<(u64, u16), Fault> {
    let type_id = varint(cursor)?;
    let count = cursor.u16_le()?;
    for _ in 0..count {
        annotation(cursor)?;
    }
    Ok((type_id, count))
}

fn annotation<'a>(cursor: &mut Cursor<'a>) -> Result<(u16, &'a str, &'a str), Fault> {
    let field = cursor.u16_le()?;
    let key = name(cursor, "annotation key")?;
    let at = cursor.offset();
    let value = text(prefixed(cursor)?, at, "annotation value")?;
    Ok((field, key, value))
}

/// A name after its length of two bytes.
fn name<'a>(cursor: &mut Cursor<'a>, what: &'static str) -> Result<&'a str, Fault> {
    let at = cursor.offset();
    let len = cursor.u16_le()?;
    text(cursor.bytes(usize::from(len))?, at, what)
}

fn text<'a>(bytes: &'a [u8], at: u64, what: &'static str) -> Result<&'a str, Fault> {
    std::str::from_utf8(bytes).map_err(|error| {
        let looked_at = u32::try_from(error.valid_up_to()).unwrap_or(u32::MAX);
        Fault { at, what: What::Utf8 { what, looked_at } }
    })
}
