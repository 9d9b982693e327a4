//! An event, borrowed from the reader.

use std::fmt;

use super::batch::{Batch, BatchType};
use super::layout::FieldType;
use super::schema::Schema;
use super::value::{Slot, Value};

/// An event of a stream.
///
/// Shape: as many values as its schema has fields.
#[derive(Clone, Copy)]
pub struct Event<'a> {
    pub(super) row: &'a BatchType,
    /// The index of its type in its batch, 0-based in the order of definition.
    pub(super) row_index: u32,
    pub(super) timestamp_ns: Option<u64>,
    /// A slot per field, and possibly more.
    pub(super) slots: &'a [Slot],
    /// Bytes that begin with the event, and the length of the event.
    pub(super) bytes: &'a [u8],
    pub(super) len_bytes: usize,
    pub(super) batch: &'a Batch,
    pub(super) offset: u64,
    pub(super) is_recovered: bool,
}

impl<'a> Event<'a> {
    /// The name.
    #[must_use]
    pub fn name(&self) -> &'a str {
        self.row.schema.name()
    }

    /// The type.
    #[inline]
    #[must_use]
    pub const fn schema(&self) -> &'a Schema {
        &self.row.schema
    }

    /// The number of its type in its batch.
    #[inline]
    #[must_use]
    pub const fn type_id(&self) -> u16 {
        self.row.type_id
    }

    /// The time, in nanoseconds on a clock that the stream does not name; `None` if events of the type have none.
    #[inline]
    #[must_use]
    pub const fn timestamp_ns(&self) -> Option<u64> {
        self.timestamp_ns
    }

    /// The offset, in bytes after decompression.
    #[inline]
    #[must_use]
    pub const fn offset(&self) -> u64 {
        self.offset
    }

    /// Whether an earlier part of its batch was lost, so that its time may be too early.
    #[must_use]
    pub const fn is_recovered(&self) -> bool {
        self.is_recovered
    }

    /// The number of fields.
    #[inline]
    #[must_use]
    pub const fn len(&self) -> usize {
        self.row.types.len()
    }

    /// Whether there are no fields.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.row.types.is_empty()
    }

    /// The value of a field; `None` if there is no such field.
    #[inline]
    #[must_use]
    pub fn value(&self, field: usize) -> Option<Value<'a>> {
        let (slot, field_type) = self.slot(field)?;
        Some(slot.view(field_type, self.bytes, self.batch))
    }

    /// The slot and type of a value.
    #[inline]
    fn slot(&self, field: usize) -> Option<(Slot, FieldType)> {
        Some((*self.slots.get(field)?, *self.row.types.get(field)?))
    }

    /// Whether a field has no value.
    #[inline]
    pub(super) fn is_absent(&self, field: usize) -> bool {
        self.slot(field).is_some_and(|(slot, field_type)| slot.is_absent(field_type))
    }

    /// The value of a field of unsigned integers.
    #[inline]
    pub(super) fn unsigned(&self, field: usize) -> Option<u64> {
        let (slot, field_type) = self.slot(field)?;
        slot.unsigned(field_type)
    }

    /// The text of a field of text.
    #[inline]
    pub(super) fn text(&self, field: usize) -> Option<&'a str> {
        let (slot, field_type) = self.slot(field)?;
        slot.pooled_text(field_type, self.batch).or_else(|| self.value(field)?.as_str())
    }

    /// The value of the first field of that name.
    #[must_use]
    pub fn value_of(&self, field: &str) -> Option<Value<'a>> {
        self.value(self.row.schema.field_index(field)?)
    }

    /// The values of all fields.
    #[inline]
    pub fn values(&self) -> impl ExactSizeIterator<Item = Value<'a>> + use<'a> {
        let Self { bytes, batch, .. } = *self;
        self.slots.iter().zip(&self.row.types).map(move |(slot, field)| slot.view(*field, bytes, batch))
    }

    /// The names and values of all fields.
    pub fn fields(&self) -> impl ExactSizeIterator<Item = (&'a str, Value<'a>)> + use<'a> {
        let names = self.row.schema.fields().iter().map(|field| field.name.as_str());
        names.zip(self.values())
    }

    /// The bytes of the event, from the tag on.
    #[must_use]
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes.get(..self.len_bytes).unwrap_or_default()
    }
}

impl fmt::Debug for Event<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?} ", self.name(), self.timestamp_ns)?;
        f.debug_map().entries(self.fields()).finish()
    }
}
