//! One event, value by value, checked against its schema.

use std::io::{self, Write};

use borehole_wire::put_varint;

use super::layout::{FieldKind, FieldType, MAX_ELEMENTS, MAX_NESTING, Tag};
use super::schema::Schema;
use super::write::{Core, Invalid, StackRef, StringRef, ValueDef, Writer, count_u32, needs_reset};

/// Puts an event together: one call a value, in the order of the fields, then [`EventWriter::finish`].
///
/// A value that does not fit is remembered, and `finish` says so; the event is not written then.
#[must_use = "an event is written by `finish`"]
pub struct EventWriter<'w, W> {
    writer: &'w mut Writer<W>,
    row: usize,
    next_field: usize,
    /// The lists and maps that are open, from the outermost in: how many values each still takes.
    open: Vec<u64>,
    /// The time that the event after this one counts from.
    base_ns: u64,
    invalid: Option<Invalid>,
}

/// Where a value goes.
enum Place {
    /// Into a field of this kind.
    Field(FieldKind),
    /// Into a list or map, behind its type.
    Element,
}

impl<'w, W: Write> EventWriter<'w, W> {
    pub(super) fn new(writer: &'w mut Writer<W>, schema: &Schema, timestamp_ns: Option<u64>) -> Self {
        let begun = begin(&mut writer.core, schema, timestamp_ns, writer.options.dialect);
        let (row, base_ns, invalid) = match begun {
            Ok((row, base_ns)) => (row, base_ns, None),
            Err(invalid) => (0, 0, Some(invalid)),
        };
        Self { writer, row, next_field: 0, open: Vec::new(), base_ns, invalid }
    }

    /// Completes the event.
    ///
    /// # Errors
    /// When a value did not fit or is missing (an [`Invalid`] inside; nothing of the event is written), or the batch
    /// is full and cannot be written.
    pub fn finish(mut self) -> io::Result<()> {
        self.close_full();
        if self.invalid.is_none() {
            self.check_complete();
        }
        let core = &mut self.writer.core;
        if let Some(invalid) = self.invalid {
            core.batch.truncate(core.committed);
            return Err(invalid.into());
        }
        core.committed = core.batch.len();
        core.base_ns = self.base_ns;
        if core.committed >= self.writer.options.batch_bytes { self.writer.end_batch() } else { Ok(()) }
    }

    fn check_complete(&mut self) {
        let (expected, found) = (self.types().len(), self.next_field);
        if let Some(left) = self.open.last() {
            let message = format!("missing elements of a list: expected {left} more, found none");
            self.refuse(Invalid::new(message));
        } else if found < expected {
            self.refuse(Invalid::new(format!("missing values: expected {expected}, found {found}")));
        }
    }

    fn types(&self) -> &[FieldType] {
        &self.writer.core.registry.row(self.row).fields
    }

    fn out(&mut self) -> &mut Vec<u8> {
        &mut self.writer.core.batch
    }

    /// Remembers the first thing that did not fit.
    #[cold]
    fn refuse(&mut self, invalid: Invalid) {
        if self.invalid.is_none() {
            let event = self.writer.core.registry.row(self.row).schema.name();
            self.invalid = Some(Invalid::new(format!("{event}: {invalid}")));
        }
    }

    /// Says that `found` does not fit the field before the next.
    #[cold]
    fn mismatch(&mut self, kind: FieldKind, found: &str) {
        let schema = &self.writer.core.registry.row(self.row).schema;
        let field = schema.fields().get(self.next_field.wrapping_sub(1)).map_or("", |field| &field.name);
        let message = format!("field {field}: expected {}, found {found}", kind.name());
        self.refuse(Invalid::new(message));
    }

    /// Closes the lists that have all their elements.
    #[inline]
    fn close_full(&mut self) {
        while self.open.last() == Some(&0) {
            self.open.pop();
        }
    }

    /// Where the next value goes; `None` if it cannot go anywhere.
    #[inline]
    fn place(&mut self) -> Option<Place> {
        if self.invalid.is_some() {
            return None;
        }
        self.close_full();
        if let Some(left) = self.open.last_mut() {
            *left -= 1;
            return Some(Place::Element);
        }
        let core = &mut self.writer.core;
        let types = &core.registry.row(self.row).fields;
        let Some(field_type) = types.get(self.next_field) else {
            let message = format!("too many values: expected {}, found more", types.len());
            self.refuse(Invalid::new(message));
            return None;
        };
        self.next_field += 1;
        if field_type.optional {
            core.batch.push(1);
        }
        Some(Place::Field(field_type.kind))
    }

    /// Leaves an optional field without a value.
    #[inline]
    pub fn absent(mut self) -> Self {
        self.put_absent();
        self
    }

    /// Writes an unsigned integer, in as many bits as the field has.
    #[inline]
    pub fn unsigned(mut self, value: u64) -> Self {
        self.put_unsigned(value);
        self
    }

    /// Writes a value.
    pub fn value(mut self, value: &ValueDef<'_>) -> Self {
        self.put(value);
        self
    }

    /// Writes a value of whatever sort.
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
            ValueDef::List(values) => {
                if self.begin_list(values.len()) {
                    values.iter().for_each(|value| self.put(value));
                }
            }
            ValueDef::Map(pairs) => {
                if self.begin_map(pairs.len()) {
                    pairs.iter().for_each(|(key, value)| {
                        self.put(key);
                        self.put(value);
                    });
                }
            }
        }
    }

    pub(super) fn put_absent(&mut self) {
        if self.invalid.is_some() {
            return;
        }
        self.close_full();
        let field_type = self.types().get(self.next_field).copied();
        match field_type {
            _ if !self.open.is_empty() => {
                self.refuse(Invalid::new("element of a list: expected a value, found none"));
            }
            Some(FieldType { optional: true, .. }) => {
                self.next_field += 1;
                self.out().push(0);
            }
            Some(FieldType { kind, .. }) => {
                self.next_field += 1;
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
                self.out().push(FieldKind::Varint as u8);
                FieldKind::Varint
            }
        };
        let width = match kind {
            FieldKind::Varint => return put_varint(self.out(), value),
            FieldKind::U8 => 1,
            FieldKind::U16 => 2,
            FieldKind::U32 => 4,
            kind => return self.mismatch(kind, "an unsigned integer"),
        };
        let bytes = value.to_le_bytes();
        if bytes[width..].iter().any(|&byte| byte != 0) {
            return self.mismatch(kind, &value.to_string());
        }
        self.out().extend_from_slice(&bytes[..width]);
    }

    /// Writes bytes that are the whole value of a field of `kind`.
    #[inline]
    fn put_fixed<const N: usize>(&mut self, kind: FieldKind, bytes: [u8; N], what: &str) {
        if self.accept(kind, what) {
            self.out().extend_from_slice(&bytes);
        }
    }

    /// Whether a value of `kind` goes to the next place; its type stands there already if that is a list.
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
                self.out().push(kind as u8);
                true
            }
        }
    }

    #[inline]
    pub(super) fn put_text(&mut self, text: &str) {
        match self.place() {
            None => {}
            Some(Place::Field(FieldKind::String)) => self.put_prefixed(text.as_bytes()),
            Some(Place::Field(FieldKind::PooledString)) => self.put_interned(Tag::Strings, text.as_bytes()),
            Some(Place::Field(kind)) => self.mismatch(kind, "text"),
            Some(Place::Element) => {
                self.out().push(FieldKind::String as u8);
                self.put_prefixed(text.as_bytes());
            }
        }
    }

    pub(super) fn put_bytes(&mut self, bytes: &[u8]) {
        if self.accept(FieldKind::Bytes, "bytes") {
            self.put_prefixed(bytes);
        }
    }

    /// Writes addresses as they stand in streams.
    pub(super) fn put_stack(&mut self, addresses: &[[u8; 8]]) {
        match self.place() {
            None => {}
            Some(Place::Field(FieldKind::Stack)) => self.put_addresses(addresses),
            Some(Place::Field(FieldKind::PooledStack)) => {
                self.put_interned(Tag::Stacks, addresses.as_flattened());
            }
            Some(Place::Field(kind)) => self.mismatch(kind, "a stack"),
            Some(Place::Element) => {
                self.out().push(FieldKind::Stack as u8);
                self.put_addresses(addresses);
            }
        }
    }

    fn put_native_stack(&mut self, addresses: &[u64]) {
        let mut bytes = std::mem::take(&mut self.writer.core.addresses);
        bytes.clear();
        bytes.extend(addresses.iter().map(|address| address.to_le_bytes()));
        self.put_stack(&bytes);
        self.writer.core.addresses = bytes;
    }

    fn put_addresses(&mut self, addresses: &[[u8; 8]]) {
        match count_u32(addresses.len()) {
            Err(invalid) => self.refuse(invalid),
            Ok(count) => {
                self.out().extend_from_slice(&count.to_le_bytes());
                self.out().extend_from_slice(addresses.as_flattened());
            }
        }
    }

    fn put_interned(&mut self, pool: Tag, entry: &[u8]) {
        match self.writer.core.intern(pool, entry) {
            Err(invalid) => self.refuse(invalid),
            Ok(id) => self.out().extend_from_slice(&id.to_le_bytes()),
        }
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

    /// Writes a reference to nothing, by this id if nothing else has it.
    pub(super) fn put_unresolved(&mut self, id: u32) {
        if self.invalid.is_some() {
            return;
        }
        self.close_full();
        let core = &mut self.writer.core;
        let kind = core.registry.row(self.row).fields.get(self.next_field).map(|field_type| field_type.kind);
        let in_list = !self.open.is_empty();
        let (kind, pool) = match kind {
            Some(FieldKind::PooledStack) if !in_list => (FieldKind::PooledStack, &mut core.stacks),
            _ => (FieldKind::PooledString, &mut core.strings),
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
        match count_u32(pairs.len()) {
            Err(invalid) => self.refuse(invalid),
            Ok(count) => {
                self.out().extend_from_slice(&count.to_le_bytes());
                for text in pairs.flat_map(|(key, value)| [key, value]) {
                    self.put_prefixed(text.as_bytes());
                }
            }
        }
    }

    /// Opens a list, into which the next `count` values go. Answers whether they can.
    pub(super) fn begin_list(&mut self, count: usize) -> bool {
        self.begin_elements(FieldKind::List, count, 1)
    }

    /// Opens a map, into which the next `count` pairs of values go. Answers whether they can.
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
                self.out().extend_from_slice(&count.to_le_bytes());
                self.open.push(u64::from(count) * width);
            }
        }
        self.invalid.is_none()
    }

    /// How deep the value being written stands in lists; a full one counts while its last value is written.
    fn levels(&self) -> usize {
        self.open.len()
    }

    fn put_prefixed(&mut self, bytes: &[u8]) {
        match count_u32(bytes.len()) {
            Err(invalid) => self.refuse(invalid),
            Ok(count) => {
                self.out().extend_from_slice(&count.to_le_bytes());
                self.out().extend_from_slice(bytes);
            }
        }
    }
}

/// Writes what stands before the values. Answers the row of the type, and what the time is afterwards.
#[inline]
fn begin(
    core: &mut Core,
    schema: &Schema,
    timestamp_ns: Option<u64>,
    dialect: super::Dialect,
) -> Result<(usize, u64), Invalid> {
    core.open();
    let row = core.type_row(schema, dialect)?;
    let type_id = core.registry.row(row).type_id.to_le_bytes();
    match (schema.has_timestamp(), timestamp_ns) {
        (true, Some(timestamp_ns)) => {
            put_head(core, type_id, timestamp_ns);
            Ok((row, timestamp_ns))
        }
        (false, None) => {
            core.batch.extend_from_slice(&[Tag::Event as u8, type_id[0], type_id[1]]);
            Ok((row, core.base_ns))
        }
        (true, None) => Err(Invalid::new(format!("{}: expected a timestamp, found none", schema.name()))),
        (false, Some(_)) => Err(Invalid::new(format!("{}: expected no timestamp, found one", schema.name()))),
    }
}

/// Writes what stands before the values of an event with a time.
#[inline]
pub(super) fn put_head(core: &mut Core, type_id: [u8; 2], timestamp_ns: u64) {
    let mut delta_ns = timestamp_ns.wrapping_sub(core.base_ns);
    if needs_reset(core.base_ns, timestamp_ns) {
        core.batch.push(Tag::Reset as u8);
        core.batch.extend_from_slice(&timestamp_ns.to_le_bytes());
        delta_ns = 0;
    }
    let [low, middle, high, ..] = delta_ns.to_le_bytes();
    core.batch.extend_from_slice(&[Tag::Event as u8, type_id[0], type_id[1], low, middle, high]);
}
