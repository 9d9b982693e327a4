//! Writes batches of events.
//!
//! A batch is built in memory and written at once, so that an output holds whole batches.

use std::io::{self, Read, Write};

use super::building::BatchBuilder;
use super::invalid::Invalid;
use super::layout::{Dialect, FrameTag, HEADER, HEADER_BYTES};
use super::read::Reader;
use super::schema::Schema;

/// Writes events as batches.
///
/// Nothing reaches the output before a batch is full, [`Writer::end_batch`] or [`Writer::finish`].
///
/// # Examples
///
/// ```
/// use borehole_trc::{FieldKind, FieldType, Reader, Schema, ValueDef, Writer};
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
    pub(super) batch: BatchBuilder,
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

impl<W: Write> Writer<W> {
    /// Creates a writer to `output`, with default options.
    pub fn new(output: W) -> Self {
        Self::with_options(output, WriteOptions::default())
    }

    /// Creates a writer to `output`.
    pub fn with_options(output: W, options: WriteOptions) -> Self {
        Self { output, options, batch: BatchBuilder::default(), has_written: false }
    }

    /// Creates a writer that continues after the input of `reader`, without another header: the definitions of the last
    /// batch are known. `output` has to be at the end of that input.
    ///
    /// # Errors
    /// If `reader` is not at the end, or its input is damaged or cut off: the continuation would not be readable.
    pub fn continuing(output: W, reader: Reader<impl Read>, options: WriteOptions) -> Result<Self, Invalid> {
        if !reader.has_ended() {
            return Err(Invalid::new("expected a stream that was read to its end, found unread data"));
        }
        if !reader.recovery().is_clean() {
            return Err(Invalid::new("expected an undamaged stream to continue, found a damaged one"));
        }
        let mut writer = Self::with_options(output, options);
        if reader.recovery().segments > 0 {
            writer.batch.adopt(&reader.batch);
            writer.has_written = true;
        }
        Ok(writer)
    }

    /// Requests a number for a type of events, used if it is free when a batch defines the type.
    pub fn want_type_id(&mut self, schema: &Schema, type_id: u16) {
        self.batch.registry.want(schema, type_id);
    }

    /// Stores a string in the current batch.
    ///
    /// # Errors
    /// If its length exceeds 32 bits, or no ids are left.
    pub fn intern_string(&mut self, string: &str) -> io::Result<StringRef> {
        self.batch.open();
        let id = self.batch.pools.intern(FrameTag::Strings, string.as_bytes())?;
        self.batch.commit(self.batch.buffer.len());
        Ok(StringRef { batch: self.batch.number, id })
    }

    /// Stores a stack in the current batch, its leaf first.
    ///
    /// # Errors
    /// If its length exceeds 32 bits, no ids are left, or the dialect has no pool of stacks.
    pub fn intern_stack(&mut self, addresses: &[u64]) -> io::Result<StackRef> {
        if self.options.dialect == Dialect::V032 {
            return Err(Invalid::new("expected a dialect with pooled stacks, found 0.3.2").into());
        }
        self.batch.open();
        let id = self.batch.pools.intern_stack(addresses.into())?;
        self.batch.commit(self.batch.buffer.len());
        Ok(StackRef { batch: self.batch.number, id })
    }

    /// Writes whole batches that were built elsewhere, each with its header.
    ///
    /// # Errors
    /// If `batches` does not begin with a header, or the output fails.
    pub fn write_raw(&mut self, batches: &[u8]) -> io::Result<()> {
        if !batches.starts_with(&HEADER) {
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
        let batch = self.batch.buffer.committed();
        let written = if batch.is_empty() {
            Ok(())
        } else {
            self.has_written = true;
            self.output.write_all(batch)
        };
        self.batch.clear();
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
    /// use borehole_trc::{Schema, WriteOptions, Writer};
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
        self.has_written |= self.batch.buffer.len() > 0;
        self.batch.buffer.exchange(batch);
        self.batch.clear();
    }

    /// Continues with another output, as a new writer would, but keeps the memory. Returns the earlier output, with
    /// everything written to it.
    ///
    /// # Errors
    /// If that cannot be written.
    pub fn reset_to(&mut self, output: W) -> io::Result<W> {
        self.complete()?;
        self.has_written = false;
        self.batch.registry.forget_wishes();
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
            self.batch.open();
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
        self.batch.buffer.len()
    }
}
