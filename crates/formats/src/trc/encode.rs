//! Writes one event, value by value, checked against its schema.

use std::io::{self, Write};

use super::intern::ASIDE;
use super::layout::{FieldKind, FieldType, MAX_ELEMENTS, MAX_NESTING, Tag};
use super::plain::{Begun, begin, put_plain};
use super::schema::Schema;
use super::write::{Invalid, StackRef, StringRef, ValueDef, Writer, count_u32};

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

/// The rarely needed state of an event under construction. It stays with the writer, so that [`EventWriter`] is a few
/// words.
#[derive(Default)]
pub(super) struct Pending {
    row: usize,
    /// The index of the next field while [`EventWriter::next`] is [`ASIDE`].
    next: usize,
    /// The number of missing values of each open list or map, the outermost first.
    open: Vec<u64>,
    invalid: Option<Invalid>,
}

impl Pending {
    /// Begins an event of a type; removes the state of an unfinished one.
    #[inline]
    pub(super) fn begin(&mut self, row: usize) {
        self.row = row;
        if !self.open.is_empty() || self.invalid.is_some() {
            self.open.clear();
            self.invalid = None;
        }
    }

    /// Remembers the first reason why the event cannot be written.
    #[cold]
    #[inline(never)]
    pub(super) fn refuse(&mut self, invalid: Invalid) {
        self.invalid.get_or_insert(invalid);
    }

    #[cold]
    #[inline(never)]
    pub(super) fn take_refusal(&mut self) -> Invalid {
        self.invalid.take().unwrap_or_else(|| Invalid::new("expected values that fit, found others"))
    }
}

/// The place of a value.
enum Place {
    /// A field of this kind.
    Field(FieldKind),
    /// An element of a list or map, after its type.
    Element,
}

impl<'w, W: Write> EventWriter<'w, W> {
    #[inline(always)]
    pub(super) fn new(writer: &'w mut Writer<W>, schema: &Schema, timestamp_ns: Option<u64>) -> Self {
        let Begun { next, at, base_ns } =
            match begin(&mut writer.core, schema, timestamp_ns, writer.options.dialect) {
                Ok(begun) => begun,
                Err(invalid) => refused(&mut writer.core.pending, invalid),
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
        if self.next == ASIDE || self.writer.core.registry.field(self.next).is_some() {
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
        let core = &mut self.writer.core;
        core.commit(self.at);
        core.base_ns = self.base_ns;
        if core.buffer.len() >= self.writer.options.batch_bytes { self.writer.end_batch() } else { Ok(()) }
    }

    fn check_complete(&mut self) -> Result<(), Invalid> {
        self.close_full();
        if self.writer.core.pending.invalid.is_none() {
            self.refuse_incomplete();
        }
        self.writer.core.pending.invalid.take().map_or(Ok(()), Err)
    }

    fn refuse_incomplete(&mut self) {
        let core = &self.writer.core;
        let row = core.registry.row(core.pending.row);
        let (expected, found) = (row.fields.len(), self.next.wrapping_sub(row.first));
        if let Some(left) = core.pending.open.last() {
            let message = format!("missing elements of a list: expected {left} more, found none");
            self.refuse(Invalid::new(message));
        } else if found < expected {
            self.refuse(Invalid::new(format!("missing values: expected {expected}, found {found}")));
        }
    }

    #[inline]
    fn out<const N: usize>(&mut self, bytes: [u8; N]) {
        self.at = self.writer.core.buffer.put(self.at, bytes);
    }

    #[inline]
    fn out_varint(&mut self, value: u64) {
        self.at = self.writer.core.buffer.put_varint(self.at, value);
    }

    #[inline]
    fn out_slice(&mut self, bytes: &[u8]) {
        self.at = self.writer.core.buffer.put_slice(self.at, bytes);
    }

    /// Remembers the first invalid value.
    #[cold]
    fn refuse(&mut self, invalid: Invalid) {
        let core = &mut self.writer.core;
        if core.pending.invalid.is_none() {
            let event = core.registry.row(core.pending.row).schema.name();
            core.pending.invalid = Some(Invalid::new(format!("{event}: {invalid}")));
        }
        self.step_aside();
    }

    /// Notes that `found` does not fit the field before the next.
    #[cold]
    fn mismatch(&mut self, kind: FieldKind, found: &str) {
        let core = &self.writer.core;
        let row = core.registry.row(core.pending.row);
        let next = if self.next == ASIDE { core.pending.next } else { self.next };
        let field = row.schema.fields().get(next.wrapping_sub(row.first + 1)).map_or("", |field| &field.name);
        let message = format!("field {field}: expected {}, found {found}", kind.name());
        self.refuse(Invalid::new(message));
    }

    /// Notes that the following values do not go into the next field.
    fn step_aside(&mut self) {
        if self.next != ASIDE {
            self.writer.core.pending.next = self.next;
            self.next = ASIDE;
        }
    }

    /// Closes the lists that have all their elements; if none is left, values go into fields again.
    fn close_full(&mut self) {
        let pending = &mut self.writer.core.pending;
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
    fn place(&mut self) -> Option<Place> {
        match self.next_field() {
            None => self.place_aside(),
            place => place,
        }
    }

    /// The next field, if values go into fields and one is left.
    #[inline]
    fn next_field(&mut self) -> Option<Place> {
        let field_type = self.writer.core.registry.field(self.next)?;
        self.next += 1;
        if field_type.optional {
            self.out([1]);
        }
        Some(Place::Field(field_type.kind))
    }

    #[cold]
    fn place_aside(&mut self) -> Option<Place> {
        self.close_full();
        let core = &mut self.writer.core;
        if self.next == ASIDE {
            let left = core.pending.open.last_mut().filter(|_| core.pending.invalid.is_none())?;
            *left -= 1;
            return Some(Place::Element);
        }
        if core.registry.field(self.next).is_some() {
            return self.next_field();
        }
        let expected = core.registry.row(core.pending.row).fields.len();
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
        let (next, at) = match put_plain(&mut writer.core, next, at, value) {
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
            ValueDef::Bool(value) => self.put_fixed(FieldKind::Bool, [u8::from(value)], "a truth value"),
            ValueDef::Text(text) => self.put_text(text),
            ValueDef::Bytes(bytes) => self.put_bytes(bytes),
            ValueDef::Stack(addresses) => self.put_native_stack(addresses),
            ValueDef::Pooled(string) => self.put_pooled(string),
            ValueDef::PooledStack(stack) => self.put_pooled_stack(stack),
            ValueDef::TextMap(pairs) => self.put_text_map(pairs.iter().copied()),
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
        match self.writer.core.registry.field(self.next) {
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
        match self.writer.core.registry.field(self.next) {
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
            Some(Place::Field(kind)) => kind,
            Some(Place::Element) => {
                self.out([FieldKind::Varint as u8]);
                FieldKind::Varint
            }
        };
        let width = match kind {
            FieldKind::Varint => return self.out_varint(value),
            FieldKind::U8 => 1,
            FieldKind::U16 => 2,
            FieldKind::U32 => 4,
            kind => return self.mismatch(kind, "an unsigned integer"),
        };
        let bytes = value.to_le_bytes();
        if bytes[width..].iter().any(|&byte| byte != 0) {
            return self.mismatch(kind, &value.to_string());
        }
        self.out_slice(&bytes[..width]);
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
            Some(Place::Field(expected)) if expected == kind => true,
            Some(Place::Field(expected)) => {
                self.mismatch(expected, what);
                false
            }
            Some(Place::Element) => {
                self.out([kind as u8]);
                true
            }
        }
    }

    #[inline]
    pub(super) fn put_text(&mut self, text: &str) {
        match self.place() {
            None => {}
            Some(Place::Field(FieldKind::String)) => self.put_prefixed(text.as_bytes()),
            Some(Place::Field(FieldKind::PooledString)) => self.put_entry(Tag::Strings, text.as_bytes()),
            Some(Place::Field(kind)) => self.mismatch(kind, "text"),
            Some(Place::Element) => {
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

    /// Writes addresses in the form of streams.
    #[inline]
    pub(super) fn put_stack(&mut self, addresses: &[[u8; 8]]) {
        match self.place() {
            None => {}
            Some(Place::Field(FieldKind::Stack)) => self.put_addresses(addresses),
            Some(Place::Field(FieldKind::PooledStack)) => {
                self.put_entry(Tag::Stacks, addresses.as_flattened());
            }
            Some(Place::Field(kind)) => self.mismatch(kind, "a stack"),
            Some(Place::Element) => {
                self.out([FieldKind::Stack as u8]);
                self.put_addresses(addresses);
            }
        }
    }

    #[inline]
    fn put_native_stack(&mut self, addresses: &[u64]) {
        match self.place() {
            None => {}
            Some(Place::Field(FieldKind::Stack)) => self.put_native_addresses(addresses),
            Some(Place::Field(FieldKind::PooledStack)) => {
                let interned = self.writer.core.pools.intern_stack(addresses);
                self.put_interned(interned);
            }
            Some(Place::Field(kind)) => self.mismatch(kind, "a stack"),
            Some(Place::Element) => {
                self.out([FieldKind::Stack as u8]);
                self.put_native_addresses(addresses);
            }
        }
    }

    #[inline]
    fn put_addresses(&mut self, addresses: &[[u8; 8]]) {
        if self.put_count(addresses.len()) {
            self.out_slice(addresses.as_flattened());
        }
    }

    fn put_native_addresses(&mut self, addresses: &[u64]) {
        if self.put_count(addresses.len()) {
            self.at = self.writer.core.buffer.put_addresses(self.at, addresses);
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

    #[inline]
    fn put_entry(&mut self, pool: Tag, entry: &[u8]) {
        let interned = self.writer.core.pools.intern(pool, entry);
        self.put_interned(interned);
    }

    fn put_pooled(&mut self, string: StringRef) {
        self.put_reference(FieldKind::PooledString, string.batch, string.id);
    }

    fn put_pooled_stack(&mut self, stack: StackRef) {
        self.put_reference(FieldKind::PooledStack, stack.batch, stack.id);
    }

    fn put_reference(&mut self, kind: FieldKind, batch: u64, id: u32) {
        if batch != self.writer.core.number {
            return self
                .refuse(Invalid::new("expected a reference of this batch, found one of an earlier batch"));
        }
        self.put_fixed(kind, id.to_le_bytes(), "a reference to a pool");
    }

    /// Writes a reference to an undefined entry, with this id unless it is defined.
    pub(super) fn put_unresolved(&mut self, id: u32) {
        self.close_full();
        let core = &mut self.writer.core;
        let (kind, pool) = match core.registry.field(self.next).map(|field_type| field_type.kind) {
            Some(FieldKind::PooledStack) => (FieldKind::PooledStack, &mut core.pools.stacks),
            _ => (FieldKind::PooledString, &mut core.pools.strings),
        };
        match pool.undefined(id) {
            Some(id) => self.put_fixed(kind, id.to_le_bytes(), "a reference to nothing"),
            None => self.refuse(Invalid::new("expected a free pool id, found none")),
        }
    }

    /// Writes pairs of text.
    pub(super) fn put_text_map<'a>(&mut self, pairs: impl ExactSizeIterator<Item = (&'a str, &'a str)>) {
        if !self.accept(FieldKind::StringMap, "pairs of text") {
            return;
        }
        if self.put_count(pairs.len()) {
            for text in pairs.flat_map(|(key, value)| [key, value]) {
                self.put_prefixed(text.as_bytes());
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
            Some(_) if self.levels() == MAX_NESTING => {
                self.refuse(Invalid::new(format!(
                    "too many levels of lists: expected at most {MAX_NESTING}"
                )));
            }
            Some(count) => {
                self.out(count.to_le_bytes());
                self.step_aside();
                self.writer.core.pending.open.push(u64::from(count) * width);
            }
        }
        self.writer.core.pending.invalid.is_none()
    }

    /// The nesting depth of the value being written; a full list counts while its last value is written.
    fn levels(&self) -> usize {
        self.writer.core.pending.open.len()
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
fn refused(pending: &mut Pending, invalid: Invalid) -> Begun {
    pending.open.clear();
    pending.invalid = Some(invalid);
    Begun { next: ASIDE, at: 0, base_ns: 0 }
}
