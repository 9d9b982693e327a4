//! Writes the head of an event and its simple values without a detour: most of most events.

use super::buffer::Buffer;
use super::layout::{FieldKind, FieldType, Tag};
use super::schema::Schema;
use super::write::{Core, Dialect, Invalid, TIMED_HEAD_BYTES, ValueDef, begin_at, timed_head};

/// An event with a written head.
pub(super) struct Begun {
    /// As in [`EventWriter`](super::EventWriter).
    pub(super) next: usize,
    pub(super) at: usize,
    pub(super) base_ns: u64,
}

/// Writes the part before the values.
#[inline(always)]
pub(super) fn begin(
    core: &mut Core,
    schema: &Schema,
    timestamp_ns: Option<u64>,
    dialect: Dialect,
) -> Result<Begun, Invalid> {
    core.open();
    let head = core.type_head(schema, dialect)?;
    core.pending.begin(head.row);
    match (head.has_timestamp, timestamp_ns) {
        (true, Some(timestamp_ns)) => {
            let (at, delta_ns) = begin_at(core, timestamp_ns);
            core.buffer.put(at, timed_head(head.type_id, delta_ns));
            let at = at + TIMED_HEAD_BYTES;
            Ok(Begun { next: head.first, at, base_ns: timestamp_ns })
        }
        (false, None) => {
            let at = core.buffer.len();
            let at = core.buffer.put(at, [Tag::Event as u8, head.type_id[0], head.type_id[1]]);
            Ok(Begun { next: head.first, at, base_ns: core.base_ns })
        }
        (true, None) => Err(Invalid::new(format!("{}: expected a timestamp, found none", schema.name()))),
        (false, Some(_)) => Err(Invalid::new(format!("{}: expected no timestamp, found one", schema.name()))),
    }
}

/// Writes a required value that fits the field, if it is simple. Returns its end.
#[inline(always)]
pub(super) fn put_plain(core: &mut Core, next: usize, at: usize, value: &ValueDef<'_>) -> Option<usize> {
    let FieldType { kind, optional: false } = core.registry.field(next)? else { return None };
    let buffer = &mut core.buffer;
    match (*value, kind) {
        (ValueDef::Unsigned(number), _) => put_unsigned(buffer, at, kind, number),
        (ValueDef::Text(text), FieldKind::String) => {
            let at = buffer.put(at, u32::try_from(text.len()).ok()?.to_le_bytes());
            Some(buffer.put_slice(at, text.as_bytes()))
        }
        (ValueDef::Bool(flag), FieldKind::Bool) => Some(buffer.put(at, [u8::from(flag)])),
        (ValueDef::Signed(number), FieldKind::I64) => Some(buffer.put(at, number.to_le_bytes())),
        (ValueDef::Float(number), FieldKind::F64) => Some(buffer.put(at, number.to_le_bytes())),
        _ => None,
    }
}

/// Writes an unsigned integer, if the field can hold it.
#[inline(always)]
fn put_unsigned(buffer: &mut Buffer, at: usize, kind: FieldKind, number: u64) -> Option<usize> {
    let [byte, second, third, fourth, ..] = number.to_le_bytes();
    match kind {
        FieldKind::Varint => Some(buffer.put_varint(at, number)),
        FieldKind::U8 if number < 1 << 8 => Some(buffer.put(at, [byte])),
        FieldKind::U16 if number < 1 << 16 => Some(buffer.put(at, [byte, second])),
        FieldKind::U32 if number < 1 << 32 => Some(buffer.put(at, [byte, second, third, fourth])),
        _ => None,
    }
}
