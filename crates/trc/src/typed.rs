//! Structs as types of events: the items that `#[derive(TraceEvent)]` implements to write them.

use std::io::{self, Write};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU16, AtomicUsize, Ordering};

use super::building::BatchBuilder;
use super::invalid::Invalid;
use super::layout::{Dialect, FIRST_DYNAMIC_TYPE_ID, FieldType};
use super::put::FieldWriter;
use super::schema::{Annotation, Definition, Field, Schema};
use super::write::Writer;

/// A type whose values are events of one schema.
///
/// Derived with `#[derive(TraceEvent)]` (feature `derive`); an implementation by hand must put exactly the fields that
/// it declares.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a type of events",
    note = "derive it: `#[derive(TraceEvent)]`"
)]
pub trait TraceEvent {
    /// The name of the events.
    const NAME: &'static str;

    /// The fields, in the order of their values.
    const FIELDS: &'static [TypedField];

    /// Whether the events have the same low number in every batch that the process writes.
    const WIRE_SLOT: bool = false;

    /// A static of this type alone: the state of the process for it.
    fn event_type() -> &'static EventType;

    /// The time, in nanoseconds.
    fn timestamp_ns(&self) -> u64;

    /// Writes the values of the fields. It is called again, for the same values, if there was too little space for
    /// them.
    fn put_fields(&self, out: &mut FieldWriter<'_>);
}

/// A field of a type of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TypedField {
    /// Its name.
    pub name: &'static str,
    /// Its type.
    pub field_type: FieldType,
    /// Facts about it: keys and values.
    pub annotations: &'static [(&'static str, &'static str)],
}

/// The state of a process for a type that implements [`TraceEvent`]: its schema, created on first use.
#[derive(Debug, Default)]
pub struct EventType(OnceLock<Result<TypeState, Invalid>>);

#[derive(Debug)]
struct TypeState {
    schema: Schema,
    /// Different for each type, counted from 0.
    index: usize,
    slot: Option<u16>,
}

impl EventType {
    /// Creates the state of an unused type.
    #[must_use]
    pub const fn new() -> Self {
        Self(OnceLock::new())
    }

    #[inline]
    fn known<T: TraceEvent + ?Sized>(&self) -> Result<&TypeState, Invalid> {
        self.0.get_or_init(|| TypeState::new::<T>()).as_ref().map_err(Clone::clone)
    }
}

impl TypeState {
    #[cold]
    fn new<T: TraceEvent + ?Sized>() -> Result<Self, Invalid> {
        static NEXT_INDEX: AtomicUsize = AtomicUsize::new(0);
        let definition = definition(T::NAME, T::FIELDS);
        Ok(Self {
            schema: Schema::define(definition)?,
            index: NEXT_INDEX.fetch_add(1, Ordering::Relaxed),
            slot: if T::WIRE_SLOT { next_slot() } else { None },
        })
    }
}

/// A low type id that no other type of the process has; `None` if all are taken.
fn next_slot() -> Option<u16> {
    static NEXT_SLOT: AtomicU16 = AtomicU16::new(1);
    let next = |slot| (slot < FIRST_DYNAMIC_TYPE_ID).then_some(slot + 1);
    NEXT_SLOT.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).ok()
}

fn definition(name: &str, fields: &[TypedField]) -> Definition {
    let annotations = (0..=u16::MAX).zip(fields).flat_map(|(number, field)| {
        let annotation = move |&(key, value): &(&str, &str)| Annotation {
            field: number,
            key: key.to_owned(),
            value: value.to_owned(),
        };
        field.annotations.iter().map(annotation)
    });
    let field = |field: &TypedField| Field { name: field.name.to_owned(), field_type: field.field_type };
    Definition {
        name: name.to_owned(),
        has_timestamp: true,
        fields: fields.iter().map(field).collect(),
        annotations: annotations.collect(),
    }
}

/// The schema of a type's events.
///
/// # Errors
/// If a name is longer than 65,535 bytes or there are more fields than that.
pub fn schema_of<T: TraceEvent + ?Sized>() -> Result<&'static Schema, Invalid> {
    T::event_type().known::<T>().map(|known| &known.schema)
}

impl<W: Write> Writer<W> {
    /// Writes an event of a type with a derived implementation.
    ///
    /// # Errors
    /// If text exceeds 32 bits in length or a pool is full (an [`Invalid`] inside; nothing of the event is written), or
    /// a batch is full and cannot be written.
    #[inline]
    pub fn write<T: TraceEvent + ?Sized>(&mut self, event: &T) -> io::Result<()> {
        let known = T::event_type().known::<T>()?;
        let (batch, options) = (&mut self.batch, self.options);
        // A batch with definitions is open.
        let type_id = match batch.typed_ids.get(known.index) {
            Some(type_id) => type_id,
            None => define(batch, known, options.dialect)?,
        };
        let timestamp_ns = event.timestamp_ns();
        let (at, delta_ns) = batch.begin_at(timestamp_ns);
        let end = loop {
            let mut fields = FieldWriter::new(batch, at, type_id, delta_ns, options.dialect);
            event.put_fields(&mut fields);
            match fields.finish()? {
                Some(left) => break batch.buffer.room_end() - left,
                None => batch.buffer.extend_room(),
            }
        };
        batch.commit(end);
        batch.base_ns = timestamp_ns;
        if batch.buffer.len() >= options.batch_bytes { self.end_batch() } else { Ok(()) }
    }
}

#[cold]
fn define(batch: &mut BatchBuilder, known: &TypeState, dialect: Dialect) -> Result<[u8; 2], Invalid> {
    batch.open();
    if let Some(slot) = known.slot {
        batch.registry.want(&known.schema, slot);
    }
    let row = batch.type_row(&known.schema, dialect)?;
    let type_id = batch.registry.row(row).type_id;
    batch.typed_ids.put(known.index, type_id);
    Ok(type_id.to_le_bytes())
}
