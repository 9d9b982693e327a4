//! Events: named records of typed fields, for traces that hold more than samples.
//!
//! The [`Shape`] that all events of one type share is stored once in [`Tables`](crate::Tables). An event itself is a
//! row of values, borrowed from where they were read.

use std::borrow::Cow;

use crate::distinct::InternedRows;
use crate::ids::{Id as _, ShapeId, StringId};

/// One event of a trace.
///
/// Shape: one value for each field of its [`Shape`], in the same order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Event<'a> {
    /// Its name and fields.
    pub shape: ShapeId,
    /// The number that the source gives this event type, within the segment.
    pub type_id: Option<u32>,
    /// The time in nanoseconds, on the clock of the input.
    pub time_ns: Option<u64>,
    /// The values of the fields.
    pub values: &'a [Value<'a>],
}

impl<'a> Event<'a> {
    /// An event without a time, of a type without a number.
    ///
    /// # Examples
    ///
    /// ```
    /// use borehole_model::{Event, FieldKind, FieldShape, Shape, Tables, Value};
    ///
    /// let mut tables = Tables::default();
    /// let [name, bytes] = [tables.intern_string(b"Collected")?, tables.intern_string(b"bytes")?];
    /// let shape = tables.intern_shape(&Shape::new(name, vec![FieldShape::new(bytes, FieldKind::Unsigned64)]))?;
    /// let values = [Value::Unsigned(4096)];
    /// let event = Event { time_ns: Some(17), ..Event::new(shape, &values) };
    /// assert_eq!((event.values.len(), event.type_id), (1, None));
    /// # Ok::<(), borehole_model::TableFull>(())
    /// ```
    #[must_use]
    pub const fn new(shape: ShapeId, values: &'a [Value<'a>]) -> Self {
        Self { shape, type_id: None, time_ns: None, values }
    }
}

/// The name and fields that events of one type share.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Shape {
    /// The name of the events.
    pub name: StringId,
    /// The fields.
    pub fields: Vec<FieldShape>,
    /// Further facts about fields from the source, such as units.
    pub annotations: Vec<Annotation>,
}

impl Shape {
    /// Events with this name and these fields, without further facts.
    #[must_use]
    pub const fn new(name: StringId, fields: Vec<FieldShape>) -> Self {
        Self { name, fields, annotations: Vec::new() }
    }
}

/// One field of an event type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FieldShape {
    /// The name; two fields may have the same one.
    pub name: StringId,
    /// The type that the source declares.
    pub kind: FieldKind,
    /// Whether the source declares that it may be absent.
    pub optional: bool,
}

impl FieldShape {
    /// A field that is always there.
    #[must_use]
    pub const fn new(name: StringId, kind: FieldKind) -> Self {
        Self { name, kind, optional: false }
    }
}

/// A fact about a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Annotation {
    /// The field, 0-based. A source may name a field that does not exist.
    pub field: u32,
    /// The key, such as `unit` or `kind`.
    pub key: StringId,
    /// The value, such as `ns` or `gauge`.
    pub value: StringId,
}

/// The declared type of a field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FieldKind {
    /// No type is declared; the values have types of their own.
    #[default]
    Undeclared,
    /// An unsigned 8-bit integer.
    Unsigned8,
    /// An unsigned 16-bit integer.
    Unsigned16,
    /// An unsigned 32-bit integer.
    Unsigned32,
    /// An unsigned integer of up to 64 bits.
    Unsigned64,
    /// A signed 64-bit integer.
    Signed64,
    /// A 64-bit floating-point number.
    Float64,
    /// True or false.
    Bool,
    /// Text stored in each event.
    Text,
    /// Text that the source stores once and refers to.
    PooledText,
    /// Bytes.
    Bytes,
    /// Addresses stored in each event.
    Stack,
    /// Addresses that the source stores once and refers to.
    PooledStack,
    /// A map from text to text.
    TextMap,
    /// A list of values of any type.
    List,
    /// A map from values of any type to values of any type.
    Map,
}

/// The value of a field.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Value<'a> {
    /// No value.
    #[default]
    Absent,
    /// An unsigned integer.
    Unsigned(u64),
    /// A signed integer.
    Signed(i64),
    /// A floating-point number.
    Float(f64),
    /// True or false.
    Bool(bool),
    /// Text.
    Text(Cow<'a, str>),
    /// Bytes.
    Bytes(&'a [u8]),
    /// A call stack as addresses, leaf first.
    Stack(Addresses<'a>),
    /// A list of values.
    List(Vec<Value<'a>>),
    /// Key-value pairs in order; keys may repeat.
    Map(Vec<(Value<'a>, Value<'a>)>),
    /// A reference to pooled text or a pooled stack that the source has not defined.
    Unresolved(u32),
}

/// Addresses as files store them: eight bytes each, little-endian, at any alignment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Addresses<'a>(pub &'a [[u8; 8]]);

impl<'a> Addresses<'a> {
    /// The addresses.
    pub fn iter(self) -> impl ExactSizeIterator<Item = u64> + 'a {
        self.0.iter().map(|&bytes| u64::from_le_bytes(bytes))
    }

    /// The number of addresses.
    #[must_use]
    pub const fn len(self) -> usize {
        self.0.len()
    }

    /// Whether there are no addresses.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0.is_empty()
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct ShapeTable(InternedRows<Shape>);

impl ShapeTable {
    pub(crate) fn intern(&mut self, shape: &Shape) -> Option<ShapeId> {
        ShapeId::from_row(self.0.intern(shape)? as usize)
    }

    #[inline]
    pub(crate) fn get(&self, id: ShapeId) -> &Shape {
        &self.0.rows()[id.row()]
    }

    pub(crate) fn held_bytes(&self) -> usize {
        self.0.held_bytes()
    }

    pub(crate) const fn len(&self) -> usize {
        self.0.rows().len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_shapes_are_stored_once_and_an_annotation_makes_another() {
        let name = StringId::from_row(0).unwrap();
        let field = FieldShape { name, kind: FieldKind::Unsigned64, optional: false };
        let plain = Shape { name, fields: vec![field], annotations: Vec::new() };
        let annotation = Annotation { field: 0, key: name, value: name };
        let annotated = Shape { annotations: vec![annotation], ..plain.clone() };
        let mut table = ShapeTable::default();
        let ids = [&plain, &annotated, &plain].map(|shape| table.intern(shape).unwrap());
        assert_eq!((ids[0], table.len()), (ids[2], 2));
        assert_eq!(table.get(ids[1]), &annotated);
    }

    #[test]
    fn addresses_are_little_endian() {
        let bytes = [[1, 0, 0, 0, 0, 0, 0, 0x80], [2, 0, 0, 0, 0, 0, 0, 0]];
        let addresses = Addresses(&bytes);
        assert_eq!(addresses.iter().collect::<Vec<_>>(), [0x8000_0000_0000_0001, 2]);
        assert_eq!((addresses.len(), addresses.is_empty()), (2, false));
    }
}
