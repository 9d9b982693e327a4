//! The state of a batch, from one header to the next: types, pools, the time.

use borehole_memory::HeldBytes as _;
use hashbrown::HashMap;

use super::layout::FieldType;
use super::pool::{StackPool, StringPool};
use super::schema::{Annotation, Definition, Schema};

/// The maximum number of annotation frames of a type in one batch. A writer needs one; each makes another type of the
/// events after it, and importers keep all annotations of each type.
pub(super) const MAX_ANNOTATION_FRAMES: usize = 64;

/// The definitions that the frames of a batch refer to.
#[derive(Debug, Default)]
pub(super) struct Batch {
    rows: Vec<BatchType>,
    types: TypeTable,
    pub(super) strings: StringPool,
    pub(super) stacks: StackPool,
    /// The base time of the next event.
    pub(super) base_ns: u64,
    /// The approximate memory of the types.
    type_bytes: usize,
}

/// A type of events of the batch.
#[derive(Debug)]
pub(super) struct BatchType {
    pub(super) type_id: u16,
    pub(super) has_timestamp: bool,
    /// The types of the fields, packed: reading an event iterates over them.
    pub(super) types: Box<[FieldType]>,
    pub(super) schema: Schema,
    annotation_frames: usize,
}

/// A type id is already used for other events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Conflict;

impl Batch {
    /// Removes everything and keeps the memory.
    pub(super) fn clear(&mut self) {
        self.rows.clear();
        self.types.clear();
        self.strings.clear();
        self.stacks.clear();
        self.base_ns = 0;
        self.type_bytes = 0;
    }

    /// The row of a type.
    #[inline]
    pub(super) fn find(&self, type_id: u16) -> Option<(u32, &BatchType)> {
        let row = self.types.get(type_id);
        Some((row, self.rows.get(row as usize)?))
    }

    #[inline]
    pub(super) fn row(&self, row: u32) -> &BatchType {
        &self.rows[row as usize]
    }

    /// All types, in the order of their definition.
    pub(super) fn rows(&self) -> &[BatchType] {
        &self.rows
    }

    /// Defines a type. An equal definition is not a new one, whatever annotations came in between.
    pub(super) fn register(&mut self, type_id: u16, definition: Definition) -> Result<u32, Conflict> {
        if let Some((row, known)) = self.find(type_id) {
            return if known.schema.defines_the_same(&definition) { Ok(row) } else { Err(Conflict) };
        }
        Ok(self.define(type_id, definition))
    }

    /// Defines a type, replacing any earlier meaning of its id.
    pub(super) fn define(&mut self, type_id: u16, definition: Definition) -> u32 {
        // 65,536 ids, each redefined by frames that have bytes: a u32 holds their number.
        let row = u32::try_from(self.rows.len()).unwrap_or(u32::MAX);
        self.types.put(type_id, row);
        self.rows.push(BatchType {
            type_id,
            has_timestamp: definition.has_timestamp,
            types: definition.fields.iter().map(|field| field.field_type).collect(),
            schema: Schema::unchecked(definition),
            annotation_frames: 0,
        });
        row
    }

    /// Adds the annotations of one frame to a type; those of an undefined type are lost. Returns whether they are the
    /// first of that type beyond the limit, which are ignored like all later ones.
    pub(super) fn annotate(&mut self, type_id: u16, annotations: Vec<Annotation>) -> bool {
        let Some(row) = self.rows.get_mut(self.types.get(type_id) as usize) else { return false };
        row.annotation_frames = row.annotation_frames.saturating_add(1);
        if row.annotation_frames <= MAX_ANNOTATION_FRAMES {
            row.schema.annotate(annotations);
        }
        row.annotation_frames == MAX_ANNOTATION_FRAMES + 1
    }

    /// Counts a frame of `bytes` that defines or annotates a type. In memory a field of three bytes takes some forty.
    pub(super) fn count_type(&mut self, bytes: usize) {
        self.type_bytes = self.type_bytes.saturating_add(bytes.saturating_mul(16));
    }

    /// The memory of the definitions, in bytes: what the pools have allocated, and about what the types have.
    pub(super) fn held_bytes(&self) -> usize {
        let types =
            self.type_bytes.saturating_add(self.rows.held_bytes()).saturating_add(self.types.held_bytes());
        types.saturating_add(self.strings.held_bytes()).saturating_add(self.stacks.held_bytes())
    }
}

/// Maps type ids to rows. Real streams use a few hundred low ids.
#[derive(Debug, Default)]
struct TypeTable {
    low: Vec<u32>,
    high: HashMap<u16, u32>,
}

/// The row of undefined types; there are never that many rows.
const NO_ROW: u32 = u32::MAX;

/// Ids below this one are looked up by position.
const LOW_IDS: u16 = 1024;

impl TypeTable {
    #[inline]
    fn get(&self, type_id: u16) -> u32 {
        match self.low.get(usize::from(type_id)) {
            Some(&row) => row,
            None => self.high.get(&type_id).map_or(NO_ROW, |row| *row),
        }
    }

    fn put(&mut self, type_id: u16, row: u32) {
        if type_id >= LOW_IDS {
            self.high.insert(type_id, row);
            return;
        }
        let index = usize::from(type_id);
        if self.low.len() <= index {
            self.low.resize(index + 1, NO_ROW);
        }
        self.low[index] = row;
    }

    fn held_bytes(&self) -> usize {
        self.low.held_bytes() + self.high.allocation_size()
    }

    fn clear(&mut self) {
        self.low.clear();
        self.high.clear();
    }
}
