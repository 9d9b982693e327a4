//! Writes one event, value by value, checked against its schema. An invalid event leaves no trace.

use std::io::{self, Write};

use super::buffer::Buffer;
use super::building::{BatchBuilder, Begun, PendingEvent};
use super::intern::ASIDE;
use super::invalid::{Invalid, count_u32};
use super::layout::{FieldKind, FieldType, FrameTag, MAX_ELEMENTS, MAX_NESTING};
use super::schema::Schema;
use super::value::{Stack, StackFrames};
use super::write::{StackRef, StringRef, ValueDef, Writer};

impl<W: Write> Writer<W> {
    /// Writes an event. `timestamp_ns` is a time or `None`, as its schema requires.
    ///
    /// # Errors
    /// If the values do not fit the schema (an [`Invalid`] inside; nothing of the event is written), or a batch is full
    /// and cannot be written.
    #[inline]
    pub fn write_event(
        &mut self,
        schema: &Schema,
        timestamp_ns: impl Into<Option<u64>>,
        values: &[ValueDef<'_>],
    ) -> io::Result<()> {
        let mut event = self.begin_event(schema, timestamp_ns);
        for value in values {
            event = event.value(value);
        }
        event.finish()
    }

    /// Begins an event, whose values have to follow one by one. Without its [`finish`](EventWriter::finish) nothing of
    /// it is written.
    #[inline(always)]
    pub fn begin_event(
        &mut self,
        schema: &Schema,
        timestamp_ns: impl Into<Option<u64>>,
    ) -> EventWriter<'_, W> {
        EventWriter::new(self, schema, timestamp_ns.into())
    }
}

/// Builds an event: one call per value, in the order of the fields, then [`EventWriter::finish`].
///
/// An invalid value is remembered, and `finish` reports it; the event is then not written.
#[must_use = "an event is written by `finish`"]
pub struct EventWriter<'w, W> {
    writer: &'w mut Writer<W>,
    /// The index of the next field in the registry's column, or [`ASIDE`].
    next: usize,
    /// The position of the next value in the batch.
    at: usize,
    /// The base time of the event after this one.
    base_ns: u64,
}

/// The place of a value.
enum ValuePlace {
    /// A field of this kind.
    Field(FieldKind),
    /// An element of a list or map, after its type.
    Element,
}

impl<'w, W: Write> EventWriter<'w, W> {
    #[inline(always)]
    pub(super) fn new(writer: &'w mut Writer<W>, schema: &Schema, timestamp_ns: Option<u64>) -> Self {
        let Begun { next, at, base_ns } =
            match writer.batch.begin(schema, timestamp_ns, writer.options.dialect) {
                Ok(begun) => begun,
                Err(invalid) => refused(&mut writer.batch.pending, invalid),
            };
        Self { writer, next, at, base_ns }
    }

    /// Completes the event.
    ///
    /// # Errors
    /// If a value was invalid or is missing (an [`Invalid`] inside; nothing of the event is written), or the batch is
    /// full and cannot be written.
    #[inline(always)]
    pub fn finish(self) -> io::Result<()> {
        if self.next == ASIDE || self.writer.batch.registry.field(self.next).is_some() {
            return self.finish_aside();
        }
        self.commit()
    }

    #[cold]
    fn finish_aside(mut self) -> io::Result<()> {
        self.check_complete()?;
        self.commit()
    }

    #[inline(always)]
    fn commit(self) -> io::Result<()> {
        let batch = &mut self.writer.batch;
        batch.commit(self.at);
        batch.base_ns = self.base_ns;
        if batch.buffer.len() >= self.writer.options.batch_bytes { self.writer.end_batch() } else { Ok(()) }
    }

    fn check_complete(&mut self) -> Result<(), Invalid> {
        self.close_full();
        if self.writer.batch.pending.invalid.is_none() {
            self.refuse_incomplete();
        }
        self.writer.batch.pending.invalid.take().map_or(Ok(()), Err)
    }

    fn refuse_incomplete(&mut self) {
        let batch = &self.writer.batch;
        let row = batch.registry.row(batch.pending.row);
        let (expected, found) = (row.fields.len(), self.next.wrapping_sub(row.first));
        if let Some(left) = batch.pending.open.last() {
            let message = format!("missing elements of a list: expected {left} more, found none");
            self.refuse(Invalid::new(message));
        } else if found < expected {
            self.refuse(Invalid::new(format!("missing values: expected {expected}, found {found}")));
        }
    }

    #[inline]
    fn out<const N: usize>(&mut self, bytes: [u8; N]) {
        self.at = self.writer.batch.buffer.put(self.at, bytes);
    }

    #[inline]
    fn out_slice(&mut self, bytes: &[u8]) {
        self.at = self.writer.batch.buffer.put_slice(self.at, bytes);
    }

    /// Remembers the first invalid value.
    #[cold]
    fn refuse(&mut self, invalid: Invalid) {
        let batch = &mut self.writer.batch;
        if batch.pending.invalid.is_none() {
            let event = batch.registry.row(batch.pending.row).schema.name();
            batch.pending.invalid = Some(Invalid::new(format!("{event}: {invalid}")));
        }
        self.step_aside();
    }

    /// Notes that `found` does not fit the field before the next.
    #[cold]
    fn mismatch(&mut self, kind: FieldKind, found: &str) {
        let batch = &self.writer.batch;
        let row = batch.registry.row(batch.pending.row);
        let next = if self.next == ASIDE { batch.pending.next } else { self.next };
        let field = row.schema.fields().get(next.wrapping_sub(row.first + 1)).map_or("", |field| &field.name);
        let message = format!("field {field}: expected {}, found {found}", kind.name());
        self.refuse(Invalid::new(message));
    }

    /// Notes that the following values do not go into the next field.
    fn step_aside(&mut self) {
        if self.next != ASIDE {
            self.writer.batch.pending.next = self.next;
            self.next = ASIDE;
        }
    }

    /// Closes the lists that have all their elements; if none is left, values go into fields again.
    fn close_full(&mut self) {
        let pending = &mut self.writer.batch.pending;
        if self.next != ASIDE || pending.invalid.is_some() {
            return;
        }
        while pending.open.last() == Some(&0) {
            pending.open.pop();
        }
        if pending.open.is_empty() {
            self.next = pending.next;
        }
    }

    /// The place of the next value; `None` if there is none.
    #[inline]
    fn place(&mut self) -> Option<ValuePlace> {
        match self.next_field() {
            None => self.place_aside(),
            place => place,
        }
    }

    /// The next field, if values go into fields and one is left.
    #[inline]
    fn next_field(&mut self) -> Option<ValuePlace> {
        let field_type = self.writer.batch.registry.field(self.next)?;
        self.next += 1;
        if field_type.optional {
            self.out([1]);
        }
        Some(ValuePlace::Field(field_type.kind))
    }

    #[cold]
    fn place_aside(&mut self) -> Option<ValuePlace> {
        self.close_full();
        let batch = &mut self.writer.batch;
        if self.next == ASIDE {
            let left = batch.pending.open.last_mut().filter(|_| batch.pending.invalid.is_none())?;
            *left -= 1;
            return Some(ValuePlace::Element);
        }
        if batch.registry.field(self.next).is_some() {
            return self.next_field();
        }
        let expected = batch.registry.row(batch.pending.row).fields.len();
        self.refuse(Invalid::new(format!("too many values: expected {expected}, found more")));
        None
    }

    /// Leaves an optional field without a value.
    #[inline]
    pub fn absent(mut self) -> Self {
        self.put_absent();
        self
    }

    /// Writes an unsigned integer, in the number of bits of the field.
    #[inline(always)]
    pub fn unsigned(self, value: u64) -> Self {
        self.value(&ValueDef::Unsigned(value))
    }

    /// Writes text, into a field of strings or of pooled strings.
    #[inline(always)]
    pub fn text(self, text: &str) -> Self {
        self.value(&ValueDef::Text(text))
    }

    /// Writes addresses, the leaf first, into a field of stacks or of pooled stacks.
    #[inline]
    pub fn stack(self, addresses: &[u64]) -> Self {
        self.value(&ValueDef::Stack(addresses))
    }

    /// Writes a value.
    // Inlined, with a detour that takes and returns words, so that the position of values stays in registers.
    #[inline(always)]
    pub fn value(self, value: &ValueDef<'_>) -> Self {
        let Self { writer, next, at, base_ns } = self;
        let (next, at) = match put_plain(&mut writer.batch, next, at, value) {
            Some(end) => (next + 1, end),
            None => Self::put_aside(writer, next, at, value),
        };
        Self { writer, next, at, base_ns }
    }

    #[inline(never)]
    fn put_aside(writer: &mut Writer<W>, next: usize, at: usize, value: &ValueDef<'_>) -> (usize, usize) {
        let mut event = EventWriter { writer, next, at, base_ns: 0 };
        event.put(value);
        (event.next, event.at)
    }

    /// Writes a value of any kind.
    #[inline]
    pub(super) fn put(&mut self, value: &ValueDef<'_>) {
        match *value {
            ValueDef::Absent => self.put_absent(),
            ValueDef::Unsigned(value) => self.put_unsigned(value),
            ValueDef::Signed(value) => {
                self.put_fixed(FieldKind::I64, value.to_le_bytes(), "a signed integer");
            }
            ValueDef::Float(value) => {
                self.put_fixed(FieldKind::F64, value.to_le_bytes(), "a floating-point number");
            }
            ValueDef::Bool(value) => self.put_fixed(FieldKind::Bool, [u8::from(value)], "a boolean"),
            ValueDef::Text(text) => self.put_text(text),
            ValueDef::Bytes(bytes) => self.put_bytes(bytes),
            ValueDef::Stack(addresses) => self.put_stack(addresses.into()),
            ValueDef::Pooled(StringRef { batch, id }) => {
                self.put_reference(FieldKind::PooledString, batch, id);
            }
            ValueDef::PooledStack(StackRef { batch, id }) => {
                self.put_reference(FieldKind::PooledStack, batch, id);
            }
            ValueDef::TextMap(pairs) => self.put_text_map(pairs),
            ValueDef::List(_) | ValueDef::Map(_) => self.put_elements(value),
        }
    }

    /// Writes a list or map, including its nested elements.
    fn put_elements(&mut self, value: &ValueDef<'_>) {
        match *value {
            ValueDef::List(values) if self.begin_list(values.len()) => {
                values.iter().for_each(|value| self.put(value));
            }
            ValueDef::Map(pairs) if self.begin_map(pairs.len()) => pairs.iter().for_each(|(key, value)| {
                self.put(key);
                self.put(value);
            }),
            _ => {}
        }
    }

    #[inline]
    pub(super) fn put_absent(&mut self) {
        match self.writer.batch.registry.field(self.next) {
            Some(FieldType { optional: true, .. }) => {
                self.next += 1;
                self.out([0]);
            }
            _ => self.put_absent_aside(),
        }
    }

    #[cold]
    fn put_absent_aside(&mut self) {
        self.close_full();
        match self.writer.batch.registry.field(self.next) {
            None if self.next == ASIDE => {
                self.refuse(Invalid::new("element of a list: expected a value, found none"));
            }
            Some(FieldType { optional: true, .. }) => {
                self.next += 1;
                self.out([0]);
            }
            Some(FieldType { kind, .. }) => {
                self.next += 1;
                self.mismatch(kind, "no value");
            }
            None => drop(self.place()),
        }
    }

    #[inline]
    pub(super) fn put_unsigned(&mut self, value: u64) {
        let kind = match self.place() {
            None => return,
            Some(ValuePlace::Field(kind)) => kind,
            Some(ValuePlace::Element) => {
                self.out([FieldKind::Varint as u8]);
                FieldKind::Varint
            }
        };
        match put_unsigned(&mut self.writer.batch.buffer, self.at, kind, value) {
            Some(end) => self.at = end,
            None if kind.is_unsigned() => self.mismatch(kind, &value.to_string()),
            None => self.mismatch(kind, "an unsigned integer"),
        }
    }

    /// Writes bytes that are the whole value of a field of `kind`.
    #[inline]
    fn put_fixed<const N: usize>(&mut self, kind: FieldKind, bytes: [u8; N], what: &str) {
        if self.accept(kind, what) {
            self.out(bytes);
        }
    }

    /// Whether a value of `kind` fits the next place; in a list its type has then been written.
    #[inline]
    fn accept(&mut self, kind: FieldKind, what: &str) -> bool {
        match self.place() {
            None => false,
            Some(ValuePlace::Field(expected)) if expected == kind => true,
            Some(ValuePlace::Field(expected)) => {
                self.mismatch(expected, what);
                false
            }
            Some(ValuePlace::Element) => {
                self.out([kind as u8]);
                true
            }
        }
    }

    #[inline]
    pub(super) fn put_text(&mut self, text: &str) {
        match self.place() {
            None => {}
            Some(ValuePlace::Field(FieldKind::String)) => self.put_prefixed(text.as_bytes()),
            Some(ValuePlace::Field(FieldKind::PooledString)) => {
                let interned = self.writer.batch.pools.intern(FrameTag::Strings, text.as_bytes());
                self.put_interned(interned);
            }
            Some(ValuePlace::Field(kind)) => self.mismatch(kind, "text"),
            Some(ValuePlace::Element) => {
                self.out([FieldKind::String as u8]);
                self.put_prefixed(text.as_bytes());
            }
        }
    }

    #[inline]
    pub(super) fn put_bytes(&mut self, bytes: &[u8]) {
        if self.accept(FieldKind::Bytes, "bytes") {
            self.put_prefixed(bytes);
        }
    }

    #[inline]
    pub(super) fn put_stack(&mut self, stack: StackFrames<'_>) {
        match self.place() {
            None => {}
            Some(ValuePlace::Field(FieldKind::Stack)) => self.put_addresses(stack),
            Some(ValuePlace::Field(FieldKind::PooledStack)) => {
                let interned = self.writer.batch.pools.intern_stack(stack);
                self.put_interned(interned);
            }
            Some(ValuePlace::Field(kind)) => self.mismatch(kind, "a stack"),
            Some(ValuePlace::Element) => {
                self.out([FieldKind::Stack as u8]);
                self.put_addresses(stack);
            }
        }
    }

    #[inline]
    fn put_addresses(&mut self, stack: StackFrames<'_>) {
        if self.put_count(stack.len()) {
            match stack {
                StackFrames::Stored(Stack(bytes)) => self.out_slice(bytes.as_flattened()),
                StackFrames::Native(addresses) => {
                    self.at = self.writer.batch.buffer.put_addresses(self.at, addresses);
                }
            }
        }
    }

    /// Writes a count of four bytes. Returns whether it fits.
    #[inline]
    fn put_count(&mut self, count: usize) -> bool {
        match count_u32(count) {
            Err(invalid) => {
                self.refuse(invalid);
                false
            }
            Ok(count) => {
                self.out(count.to_le_bytes());
                true
            }
        }
    }

    /// Writes the id of an entry.
    #[inline]
    fn put_interned(&mut self, interned: Result<u32, Invalid>) {
        match interned {
            Err(invalid) => self.refuse(invalid),
            Ok(id) => self.out(id.to_le_bytes()),
        }
    }

    fn put_reference(&mut self, kind: FieldKind, batch: u64, id: u32) {
        if batch != self.writer.batch.number {
            return self.refuse(Invalid::new(
                "expected a reference into the current batch, found one into an earlier batch",
            ));
        }
        self.put_fixed(kind, id.to_le_bytes(), "a reference to a pool");
    }

    /// Writes a reference to an undefined entry, with this id unless it is defined.
    pub(super) fn put_unresolved(&mut self, id: u32) {
        self.close_full();
        let batch = &mut self.writer.batch;
        let (kind, pool) = match batch.registry.field(self.next).map(|field_type| field_type.kind) {
            Some(FieldKind::PooledStack) => (FieldKind::PooledStack, &mut batch.pools.stacks),
            _ => (FieldKind::PooledString, &mut batch.pools.strings),
        };
        match pool.undefined(id) {
            Some(id) => self.put_fixed(kind, id.to_le_bytes(), "an undefined reference"),
            None => self.refuse(Invalid::new("expected a free pool id, found none")),
        }
    }

    /// Writes pairs of text.
    pub(super) fn put_text_map<T: AsRef<str>>(&mut self, pairs: &[(T, T)]) {
        if self.accept(FieldKind::StringMap, "pairs of text") && self.put_count(pairs.len()) {
            for text in pairs.iter().flat_map(|(key, value)| [key, value]) {
                self.put_prefixed(text.as_ref().as_bytes());
            }
        }
    }

    /// Opens a list for the next `count` values. Returns whether they fit.
    pub(super) fn begin_list(&mut self, count: usize) -> bool {
        self.begin_elements(FieldKind::List, count, 1)
    }

    /// Opens a map for the next `count` pairs of values. Returns whether they fit.
    pub(super) fn begin_map(&mut self, count: usize) -> bool {
        self.begin_elements(FieldKind::Map, count, 2)
    }

    fn begin_elements(&mut self, kind: FieldKind, count: usize, width: u64) -> bool {
        if !self.accept(kind, "a list or map") {
            return false;
        }
        let limited = count_u32(count).ok().filter(|&count| count <= MAX_ELEMENTS);
        match limited {
            None => self.refuse(Invalid::new(format!(
                "too many elements: expected at most {MAX_ELEMENTS}, found {count}"
            ))),
            // A full list counts while its last value is written.
            Some(_) if self.writer.batch.pending.open.len() == MAX_NESTING => {
                self.refuse(Invalid::new(format!("too many nested lists: expected at most {MAX_NESTING}")));
            }
            Some(count) => {
                self.out(count.to_le_bytes());
                self.step_aside();
                self.writer.batch.pending.open.push(u64::from(count) * width);
            }
        }
        self.writer.batch.pending.invalid.is_none()
    }

    #[inline]
    fn put_prefixed(&mut self, bytes: &[u8]) {
        if self.put_count(bytes.len()) {
            self.out_slice(bytes);
        }
    }
}

/// The state of an event that cannot be begun.
#[cold]
fn refused(pending: &mut PendingEvent, invalid: Invalid) -> Begun {
    pending.open.clear();
    pending.invalid = Some(invalid);
    Begun { next: ASIDE, at: 0, base_ns: 0 }
}

/// Writes a required value that fits the field, if it is simple. Returns its end.
#[inline(always)]
fn put_plain(batch: &mut BatchBuilder, next: usize, at: usize, value: &ValueDef<'_>) -> Option<usize> {
    let FieldType { kind, optional: false } = batch.registry.field(next)? else { return None };
    let buffer = &mut batch.buffer;
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
