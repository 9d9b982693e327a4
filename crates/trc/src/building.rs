//! The batch under construction.

use std::sync::atomic::{AtomicU64, Ordering};

use borehole_wire::put_varint;

use super::batch::Batch;
use super::buffer::Buffer;
use super::intern::{Head, Registry};
use super::invalid::Invalid;
use super::layout::{Dialect, FieldType, FrameTag, HEADER, MAX_DELTA_NS, TIMED_HEAD_BYTES};
use super::pools::Pools;
use super::schema::{Annotation, Schema};

/// The state of a writer beside its output.
pub(super) struct BatchBuilder {
    pub(super) buffer: Buffer,
    pub(super) base_ns: u64,
    pub(super) registry: Registry,
    pub(super) pools: Pools,
    /// Whether the batch has a header already.
    is_open: bool,
    /// Different for each batch of this process.
    pub(super) number: u64,
    /// The rarely needed state of the event under construction.
    pub(super) pending: PendingEvent,
    /// Memory for the definition of a type.
    scratch: Vec<u8>,
    pub(super) typed_ids: TypedIds,
}

impl Default for BatchBuilder {
    fn default() -> Self {
        Self {
            buffer: Buffer::default(),
            base_ns: 0,
            registry: Registry::default(),
            pools: Pools::default(),
            is_open: false,
            number: next_batch(),
            pending: PendingEvent::default(),
            scratch: Vec::new(),
            typed_ids: TypedIds::default(),
        }
    }
}

/// A number that no earlier batch of this process has.
fn next_batch() -> u64 {
    static NEXT_BATCH: AtomicU64 = AtomicU64::new(0);
    NEXT_BATCH.fetch_add(1, Ordering::Relaxed)
}

impl BatchBuilder {
    /// Begins a batch if there is none.
    #[inline]
    pub(super) fn open(&mut self) {
        if !self.is_open {
            self.is_open = true;
            self.append(&HEADER);
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

    /// Begins another batch and keeps the memory.
    pub(super) fn clear(&mut self) {
        self.buffer.clear();
        self.base_ns = 0;
        self.registry.clear();
        self.pools.clear();
        self.typed_ids.clear();
        self.is_open = false;
        self.number = next_batch();
    }

    /// Continues a batch that was read.
    pub(super) fn adopt(&mut self, batch: &Batch) {
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
        let (row, is_new) = self.registry.define(schema, dialect)?;
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

    /// Writes the part of an event before its values.
    #[inline(always)]
    pub(super) fn begin(
        &mut self,
        schema: &Schema,
        timestamp_ns: Option<u64>,
        dialect: Dialect,
    ) -> Result<Begun, Invalid> {
        self.open();
        let head = self.type_head(schema, dialect)?;
        self.pending.begin(head.row);
        match (head.has_timestamp, timestamp_ns) {
            (true, Some(timestamp_ns)) => {
                let (at, delta_ns) = self.begin_at(timestamp_ns);
                self.buffer.put(at, timed_head(head.type_id, delta_ns));
                let at = at + TIMED_HEAD_BYTES;
                Ok(Begun { next: head.first, at, base_ns: timestamp_ns })
            }
            (false, None) => {
                let at = self.buffer.len();
                let at = self.buffer.put(at, [FrameTag::Event as u8, head.type_id[0], head.type_id[1]]);
                Ok(Begun { next: head.first, at, base_ns: self.base_ns })
            }
            (true, None) => Err(Invalid::new(format!("{}: expected a timestamp, found none", schema.name()))),
            (false, Some(_)) => {
                Err(Invalid::new(format!("{}: expected no timestamp, found one", schema.name())))
            }
        }
    }

    /// Sets the base time of the next event, if the event is earlier than it or too late for it. Returns the event's
    /// position and its distance from the base time.
    #[inline(always)]
    pub(super) fn begin_at(&mut self, timestamp_ns: u64) -> (usize, u64) {
        match timestamp_ns.checked_sub(self.base_ns) {
            Some(delta_ns) if delta_ns <= MAX_DELTA_NS => (self.buffer.len(), delta_ns),
            _ => (put_reset(&mut self.buffer, timestamp_ns), 0),
        }
    }
}

/// An event with a written head.
pub(super) struct Begun {
    /// As in [`EventWriter`](super::EventWriter).
    pub(super) next: usize,
    pub(super) at: usize,
    pub(super) base_ns: u64,
}

/// The rarely needed state of an event under construction. It stays with the writer, so that an event
/// writer is a few words.
#[derive(Default)]
pub(super) struct PendingEvent {
    pub(super) row: usize,
    /// The index of the next field while that of the event writer is [`ASIDE`](super::intern::ASIDE).
    pub(super) next: usize,
    /// The number of missing values of each open list or map, the outermost first.
    pub(super) open: Vec<u64>,
    pub(super) invalid: Option<Invalid>,
}

impl PendingEvent {
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
        self.invalid.take().unwrap_or_else(|| Invalid::new("invalid value"))
    }
}

/// The type ids of the typed events that a batch defines, by the index of their type.
#[derive(Default)]
pub(super) struct TypedIds(Vec<Option<[u8; 2]>>);

impl TypedIds {
    #[inline]
    pub(super) fn get(&self, index: usize) -> Option<[u8; 2]> {
        *self.0.get(index)?
    }

    pub(super) fn put(&mut self, index: usize, type_id: u16) {
        if self.0.len() <= index {
            self.0.resize(index + 1, None);
        }
        self.0[index] = Some(type_id.to_le_bytes());
    }

    /// Removes the types and keeps the memory.
    pub(super) fn clear(&mut self) {
        self.0.clear();
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
    out.push(FrameTag::Schema as u8);
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
    out.push(FrameTag::Annotations as u8);
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

/// The part before the values of an event with a time, in one piece: [`TIMED_HEAD_BYTES`] and zeros.
#[inline(always)]
pub(super) const fn timed_head([low, high]: [u8; 2], delta_ns: u64) -> [u8; 8] {
    let head = u64::from_le_bytes([FrameTag::Event as u8, low, high, 0, 0, 0, 0, 0]) | delta_ns << 24;
    head.to_le_bytes()
}

#[cold]
#[inline(never)]
fn put_reset(buffer: &mut Buffer, timestamp_ns: u64) -> usize {
    let at = buffer.put(buffer.len(), [FrameTag::Reset as u8]);
    buffer.put(at, timestamp_ns.to_le_bytes())
}
