//! Writes batches of events.
//!
//! A batch is built in memory and written at once, so that an output holds whole batches. An event is checked against
//! its schema as it is built; an invalid one leaves no trace.

use std::io::{self, Read, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::{error, fmt};

use borehole_wire::put_varint;

use super::buffer::Buffer;
use super::encode::{EventWriter, Pending};
use super::intern::{Head, Refusal, Registry};
use super::layout::{FieldType, HEADER_BYTES, MAGIC, MAX_DELTA_NS, Tag, VERSION};
use super::pools::Pools;
use super::read::Reader;
use super::schema::{Annotation, Schema};
use super::typed::TypedIds;

/// Writes events as batches.
///
/// Nothing reaches the output before a batch is full, [`Writer::end_batch`] or [`Writer::finish`].
///
/// # Examples
///
/// ```
/// use borehole_formats::trc::{FieldKind, FieldType, Reader, Schema, ValueDef, Writer};
///
/// let poll = Schema::new("Poll", [
///     ("worker", FieldType::required(FieldKind::U8)),
///     ("location", FieldType::optional(FieldKind::PooledString)),
/// ])?;
/// let mut writer = Writer::new(Vec::new());
/// writer.write_event(&poll, 1_000, &[ValueDef::Unsigned(3), ValueDef::Text("src/main.rs:7")])?;
/// assert!(writer.write_event(&poll, 2_000, &[ValueDef::Unsigned(256), ValueDef::Absent]).is_err());
/// writer.begin_event(&poll, 3_000).unsigned(4).absent().finish()?;
///
/// let mut reader = Reader::new(std::io::Cursor::new(writer.finish()?));
/// let mut workers = Vec::new();
/// reader.for_each_event(|event| workers.extend(event.value_of("worker").and_then(|value| value.as_u64())))?;
/// assert_eq!(workers, [3, 4]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Writer<W> {
    output: W,
    pub(super) options: WriteOptions,
    pub(super) core: Core,
    /// Whether anything has been written.
    has_written: bool,
}

/// The options for writing events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteOptions {
    /// The readers that must support the stream.
    pub dialect: Dialect,
    /// The size from which on a batch is written and another one begins. A batch defines everything that it uses, so
    /// small ones repeat a lot, and large ones lose a lot if a program dies.
    pub batch_bytes: usize,
}

impl Default for WriteOptions {
    /// The newest dialect, in batches of some 256 KiB: one stays in the caches of a processor until it is written, and
    /// its repeated definitions are small in comparison. The recorder of the reference makes them four times as large.
    fn default() -> Self {
        Self { dialect: Dialect::Newest, batch_bytes: 256 << 10 }
    }
}

/// The readers that must support a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dialect {
    /// Those of dial9 0.4 and newer: all features.
    #[default]
    Newest,
    /// Those that know only the specification of 0.3.2: each event contains its stacks, annotations are omitted, lists
    /// and maps of any values are rejected.
    V032,
}

/// The value of a field, to be written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ValueDef<'a> {
    /// No value, of an optional field.
    Absent,
    /// An unsigned integer, in the number of bits of the field.
    Unsigned(u64),
    /// A signed integer.
    Signed(i64),
    /// A floating-point number.
    Float(f64),
    /// A boolean.
    Bool(bool),
    /// Text. In a field of pooled strings it is stored once per batch.
    Text(&'a str),
    /// Bytes.
    Bytes(&'a [u8]),
    /// Addresses, the leaf first. In a field of pooled stacks they are stored once per batch.
    Stack(&'a [u64]),
    /// A string of the pool.
    Pooled(StringRef),
    /// A stack of the pool.
    PooledStack(StackRef),
    /// Pairs of text.
    TextMap(&'a [(&'a str, &'a str)]),
    /// Values of any kind, none of which may be absent.
    List(&'a [ValueDef<'a>]),
    /// Pairs of values of any kind, none of which may be absent.
    Map(&'a [(ValueDef<'a>, ValueDef<'a>)]),
}

/// A string that the current batch defines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StringRef {
    pub(super) batch: u64,
    pub(super) id: u32,
}

/// A stack that the current batch defines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StackRef {
    pub(super) batch: u64,
    pub(super) id: u32,
}

/// The reason why data cannot be written: "expected X, found Y". It is the inner error of an [`io::Error`] of
/// the kind [`InvalidInput`](io::ErrorKind::InvalidInput).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invalid(String);

impl Invalid {
    #[cold]
    pub(super) fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl error::Error for Invalid {}

impl From<Invalid> for io::Error {
    fn from(invalid: Invalid) -> Self {
        Self::new(io::ErrorKind::InvalidInput, invalid)
    }
}

impl<W: Write> Writer<W> {
    /// Creates a writer to `output`, with default options.
    pub fn new(output: W) -> Self {
        Self::with_options(output, WriteOptions::default())
    }

    /// Creates a writer to `output`.
    pub fn with_options(output: W, options: WriteOptions) -> Self {
        let core = Core { number: next_batch(), ..Core::default() };
        Self { output, options, core, has_written: false }
    }

    /// Creates a writer that continues after the input of `reader`, without another header: the definitions of the last
    /// batch are known. `output` has to be at the end of that input.
    ///
    /// # Errors
    /// If `reader` is not at the end, or its input is damaged or cut off: the continuation would not be readable.
    pub fn continuing(output: W, reader: Reader<impl Read>, options: WriteOptions) -> Result<Self, Invalid> {
        if !reader.has_ended() {
            return Err(Invalid::new("expected a stream read to its end, found one with more to read"));
        }
        if !reader.recovery().is_clean() {
            return Err(Invalid::new("expected a whole stream to go on with, found a damaged one"));
        }
        let mut writer = Self::with_options(output, options);
        if reader.recovery().segments > 0 {
            writer.core.adopt(&reader);
            writer.has_written = true;
        }
        Ok(writer)
    }

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

    /// Requests a number for a type of events, used if it is free when a batch defines the type.
    pub fn want_type_id(&mut self, schema: &Schema, type_id: u16) {
        self.core.registry.want(schema, type_id);
    }

    /// Stores a string in the current batch.
    ///
    /// # Errors
    /// If its length exceeds 32 bits, or no ids are left.
    pub fn intern_string(&mut self, string: &str) -> io::Result<StringRef> {
        self.core.open();
        let id = self.core.pools.intern(Tag::Strings, string.as_bytes())?;
        self.core.commit(self.core.buffer.len());
        Ok(StringRef { batch: self.core.number, id })
    }

    /// Stores a stack in the current batch, its leaf first.
    ///
    /// # Errors
    /// If its length exceeds 32 bits, no ids are left, or the dialect has no pool of stacks.
    pub fn intern_stack(&mut self, addresses: &[u64]) -> io::Result<StackRef> {
        if self.options.dialect == Dialect::V032 {
            return Err(Invalid::new("expected a dialect with pooled stacks, found 0.3.2").into());
        }
        self.core.open();
        let id = self.core.pools.intern_stack(addresses)?;
        self.core.commit(self.core.buffer.len());
        Ok(StackRef { batch: self.core.number, id })
    }

    /// Writes whole batches that were built elsewhere, each with its header.
    ///
    /// # Errors
    /// If `batches` does not begin with a header, or the output fails.
    pub fn write_raw(&mut self, batches: &[u8]) -> io::Result<()> {
        let [t, r, c, zero] = MAGIC;
        if !batches.starts_with(&[t, r, c, zero, VERSION]) {
            let found = batches[..batches.len().min(HEADER_BYTES)].escape_ascii();
            return Err(Invalid::new(format!(
                "expected batches that begin with a header, found \"{found}\""
            ))
            .into());
        }
        self.end_batch()?;
        self.has_written = true;
        self.output.write_all(batches)
    }

    /// Writes the batch under construction. The next event begins another batch.
    ///
    /// # Errors
    /// If the output fails. The batch is then lost; later events form a batch of their own.
    pub fn end_batch(&mut self) -> io::Result<()> {
        let batch = self.core.buffer.committed();
        let written = if batch.is_empty() {
            Ok(())
        } else {
            self.has_written = true;
            self.output.write_all(batch)
        };
        self.core.clear();
        written
    }

    /// Completes the batch like [`Writer::end_batch`], but returns it instead of writing it, without a copy: `batch`
    /// becomes the completed batch, empty if there is none, and its memory is reused for the next one.
    ///
    /// With batches of unlimited size that are all taken by this call, events never reach the output.
    ///
    /// # Examples
    ///
    /// ```
    /// use borehole_formats::trc::{Schema, WriteOptions, Writer};
    ///
    /// let tick = Schema::new("Tick", [])?;
    /// let options = WriteOptions { batch_bytes: usize::MAX, ..WriteOptions::default() };
    /// let (mut writer, mut batch) = (Writer::with_options(std::io::sink(), options), Vec::new());
    /// writer.write_event(&tick, 1_000, &[])?;
    /// writer.exchange_batch(&mut batch);
    /// assert!(batch.starts_with(b"TRC\0\x01"));
    /// writer.exchange_batch(&mut batch);
    /// assert!(batch.is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn exchange_batch(&mut self, batch: &mut Vec<u8>) {
        self.has_written |= self.core.buffer.len() > 0;
        self.core.buffer.exchange(batch);
        self.core.clear();
    }

    /// Continues with another output, as a new writer would, but keeps the memory. Returns the earlier output, with
    /// everything written to it.
    ///
    /// # Errors
    /// If that cannot be written.
    pub fn reset_to(&mut self, output: W) -> io::Result<W> {
        self.complete()?;
        self.has_written = false;
        self.core.registry.forget_wishes();
        Ok(std::mem::replace(&mut self.output, output))
    }

    /// Writes the batch under construction, or only a header if there was no event, and returns the output.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn finish(mut self) -> io::Result<W> {
        self.complete()?;
        Ok(self.output)
    }

    /// Writes the batch under construction, or a header if nothing was ever written.
    pub(super) fn complete(&mut self) -> io::Result<()> {
        if !self.has_written {
            self.core.open();
        }
        self.end_batch()?;
        self.output.flush()
    }

    /// The output, without the data that is not written yet.
    pub const fn output(&self) -> &W {
        &self.output
    }

    /// The output, between two batches. Other data written to it must be whole batches.
    pub const fn output_mut(&mut self) -> &mut W {
        &mut self.output
    }

    /// The number of bytes of the batch under construction, which are not in the output.
    pub const fn pending_bytes(&self) -> usize {
        self.core.buffer.len()
    }
}

/// The state of a writer beside its output: the batch under construction.
#[derive(Default)]
pub(super) struct Core {
    pub(super) buffer: Buffer,
    pub(super) base_ns: u64,
    pub(super) registry: Registry,
    pub(super) pools: Pools,
    /// Whether the batch has a header already.
    is_open: bool,
    /// Different for each batch of this process.
    pub(super) number: u64,
    /// The rarely needed state of the event under construction.
    pub(super) pending: Pending,
    /// Memory for the definition of a type.
    scratch: Vec<u8>,
    pub(super) typed_ids: TypedIds,
}

/// A number that no earlier batch of this process has.
fn next_batch() -> u64 {
    static NEXT_BATCH: AtomicU64 = AtomicU64::new(0);
    NEXT_BATCH.fetch_add(1, Ordering::Relaxed)
}

impl Core {
    /// Begins a batch if there is none.
    #[inline]
    pub(super) fn open(&mut self) {
        if !self.is_open {
            self.is_open = true;
            let [t, r, c, zero] = MAGIC;
            self.append(&[t, r, c, zero, VERSION]);
        }
    }

    /// Marks the bytes before `end` as complete frames, and inserts the queued definitions before the last of them.
    #[inline(always)]
    pub(super) fn commit(&mut self, end: usize) {
        match self.pools.frames() {
            [] => self.buffer.commit(end),
            _ => self.commit_behind_definitions(end),
        }
    }

    #[cold]
    #[inline(never)]
    fn commit_behind_definitions(&mut self, end: usize) {
        self.buffer.commit_behind(self.pools.frames(), end);
        self.pools.clear_frames();
    }

    /// Appends complete frames. No event is under construction.
    fn append(&mut self, frames: &[u8]) {
        let end = self.buffer.put_slice(self.buffer.len(), frames);
        self.buffer.commit(end);
    }

    fn clear(&mut self) {
        self.buffer.clear();
        self.base_ns = 0;
        self.registry.clear();
        self.pools.clear();
        self.typed_ids.clear();
        self.is_open = false;
        self.number = next_batch();
    }

    fn adopt(&mut self, reader: &Reader<impl Read>) {
        let batch = &reader.batch;
        self.is_open = true;
        self.base_ns = batch.base_ns;
        self.registry.adopt(batch);
        for id in batch.strings.ids() {
            self.pools.strings.adopt(batch.strings.get(id).unwrap_or_default().as_bytes(), id);
        }
        for id in batch.stacks.ids() {
            self.pools.stacks.adopt(batch.stacks.get(id).unwrap_or_default().as_flattened(), id);
        }
    }

    /// The facts about a type that writing an event needs; defines it if needed. The batch is open.
    #[inline(always)]
    pub(super) fn type_head(&mut self, schema: &Schema, dialect: Dialect) -> Result<Head, Invalid> {
        match self.registry.recent(schema) {
            Some(head) => Ok(head),
            None => self.find_head(schema, dialect),
        }
    }

    #[cold]
    fn find_head(&mut self, schema: &Schema, dialect: Dialect) -> Result<Head, Invalid> {
        let row = self.type_row(schema, dialect)?;
        Ok(self.registry.head(schema, row))
    }

    /// The row of a type; defines it if needed. The batch is open.
    #[inline]
    pub(super) fn type_row(&mut self, schema: &Schema, dialect: Dialect) -> Result<usize, Invalid> {
        match self.registry.find(schema) {
            Some(row) => Ok(row),
            None => self.define_type(schema, dialect),
        }
    }

    #[cold]
    fn define_type(&mut self, schema: &Schema, dialect: Dialect) -> Result<usize, Invalid> {
        let (row, is_new) =
            self.registry.define(schema, dialect).map_err(|refusal| refusal.invalid(schema))?;
        if is_new {
            let defined = self.registry.row(row);
            let mut frames = std::mem::take(&mut self.scratch);
            frames.clear();
            put_schema(&mut frames, schema, defined.type_id, &defined.fields);
            if dialect == Dialect::Newest && !schema.annotations().is_empty() {
                put_annotations(&mut frames, defined.type_id, schema.annotations());
            }
            self.append(&frames);
            self.scratch = frames;
        }
        Ok(row)
    }
}

/// A count in the wire's form.
#[inline]
pub(super) fn count_u32(count: usize) -> Result<u32, Invalid> {
    u32::try_from(count).map_err(|_| too_large(count))
}

#[cold]
fn too_large(count: usize) -> Invalid {
    Invalid::new(format!("too large: expected at most {}, found {count}", u32::MAX))
}

impl Refusal {
    fn invalid(self, schema: &Schema) -> Invalid {
        let name = schema.name();
        Invalid::new(match self {
            Self::Full => {
                format!("too many event types in one batch: expected at most 65536, found {name} too")
            }
            Self::Unknown(kind) => {
                format!("unsupported field of {name}: expected a type of 0.3.2, found {}", kind.name())
            }
        })
    }
}

/// Appends a length that [`Schema::define`] has checked.
fn put_u16(out: &mut Vec<u8>, count: usize) {
    out.extend_from_slice(&u16::try_from(count).unwrap_or(u16::MAX).to_le_bytes());
}

fn put_name(out: &mut Vec<u8>, name: &str) {
    put_u16(out, name.len());
    out.extend_from_slice(name.as_bytes());
}

fn put_schema(out: &mut Vec<u8>, schema: &Schema, type_id: u16, types: &[FieldType]) {
    out.push(Tag::Schema as u8);
    out.extend_from_slice(&type_id.to_le_bytes());
    put_name(out, schema.name());
    out.push(u8::from(schema.has_timestamp()));
    put_u16(out, types.len());
    for (field, field_type) in schema.fields().iter().zip(types) {
        put_name(out, &field.name);
        out.push(field_type.to_byte());
    }
}

fn put_annotations(out: &mut Vec<u8>, type_id: u16, annotations: &[Annotation]) {
    out.push(Tag::Annotations as u8);
    put_varint(out, u64::from(type_id));
    put_u16(out, annotations.len());
    for annotation in annotations {
        out.extend_from_slice(&annotation.field.to_le_bytes());
        put_name(out, &annotation.key);
        // A value of 4 GiB would not have fitted into memory beside its schema.
        let len = u32::try_from(annotation.value.len()).unwrap_or(u32::MAX);
        out.extend_from_slice(&len.to_le_bytes());
        out.extend_from_slice(annotation.value.as_bytes());
    }
}

/// Sets the base time of the next event, if the event is earlier than it or too late for it. Returns the event's
/// position and its distance from the base time.
#[inline(always)]
pub(super) fn begin_at(core: &mut Core, timestamp_ns: u64) -> (usize, u64) {
    match timestamp_ns.checked_sub(core.base_ns) {
        Some(delta_ns) if delta_ns <= MAX_DELTA_NS => (core.buffer.len(), delta_ns),
        _ => (put_reset(&mut core.buffer, timestamp_ns), 0),
    }
}

#[cold]
#[inline(never)]
fn put_reset(buffer: &mut Buffer, timestamp_ns: u64) -> usize {
    let at = buffer.put(buffer.len(), [Tag::Reset as u8]);
    buffer.put(at, timestamp_ns.to_le_bytes())
}

/// The part before the values of an event with a time, in one piece: [`TIMED_HEAD_BYTES`] and zeros.
#[inline(always)]
pub(super) const fn timed_head([low, high]: [u8; 2], delta_ns: u64) -> [u8; 8] {
    let head = u64::from_le_bytes([Tag::Event as u8, low, high, 0, 0, 0, 0, 0]) | delta_ns << 24;
    head.to_le_bytes()
}

/// The length of tag, type id and the time since the event before.
pub(super) const TIMED_HEAD_BYTES: usize = 6;
