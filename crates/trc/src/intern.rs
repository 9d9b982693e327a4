//! The writer's definitions in the current batch.

use std::hash::BuildHasher as _;

use hashbrown::{DefaultHashBuilder, HashMap, HashTable};

use super::batch::Batch;
use super::invalid::Invalid;
use super::layout::{Dialect, FieldKind, FieldType};
use super::schema::Schema;

/// Byte strings under ids: strings, and stacks as the bytes of their addresses.
#[derive(Default)]
pub(super) struct Interned {
    bytes: Vec<u8>,
    ends: Vec<usize>,
    ids: Vec<u32>,
    index: HashTable<usize>,
    hasher: DefaultHashBuilder,
    next: u32,
    /// Ids that must not be assigned: defined by the earlier part of the stream, or to stay undefined.
    occupied: HashMap<u32, Occupation>,
    recent: Recent,
}

/// The rows of recently interned entries, by their address in memory: equal texts of a program are usually at the same
/// address. The contents are compared too.
struct Recent([u32; 1 << Self::PLACE_BITS]);

impl Recent {
    const PLACE_BITS: u32 = 10;
    const NONE: u32 = u32::MAX;

    /// The place of an entry of `len` bytes.
    #[inline]
    fn place(address: usize, len: usize) -> usize {
        // Adjacent entries differ only in their lowest bits, which a product carries into its highest.
        let mixed = (address as u64 ^ (len as u64) << 48).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        // A few bits.
        usize::try_from(mixed >> (u64::BITS - Self::PLACE_BITS)).unwrap_or_default()
    }
}

impl Default for Recent {
    fn default() -> Self {
        Self([Self::NONE; 1 << Self::PLACE_BITS])
    }
}

/// The reason why an id must not be assigned.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Occupation {
    Defined,
    Undefined,
}

impl Interned {
    /// The id of `entry`, if it was interned recently.
    #[inline]
    pub(super) fn recent(&self, entry: &[u8]) -> Option<u32> {
        let row = self.recent_row(entry.as_ptr().addr(), entry.len());
        is_same(self.entry(row)?, entry).then(|| self.ids[row])
    }

    /// The id of a stack of the program, if it was interned recently.
    #[inline]
    pub(super) fn recent_stack(&self, addresses: &[u64]) -> Option<u32> {
        let row = self.recent_row(addresses.as_ptr().addr(), size_of_val(addresses));
        let (stored, rest) = self.entry(row)?.as_chunks();
        if stored.len() != addresses.len() || !rest.is_empty() {
            return None;
        }
        // All of them, without testing each: as many at once as the machine can.
        let pairs = stored.iter().zip(addresses);
        let differing = pairs.fold(0, |bits, (one, other)| bits | (u64::from_le_bytes(*one) ^ other));
        (differing == 0).then(|| self.ids[row])
    }

    #[inline]
    fn recent_row(&self, address: usize, len: usize) -> usize {
        self.recent.0[Recent::place(address, len)] as usize
    }

    #[inline]
    fn entry(&self, row: usize) -> Option<&[u8]> {
        let end = *self.ends.get(row)?;
        let start = if row == 0 { 0 } else { self.ends[row - 1] };
        self.bytes.get(start..end)
    }

    /// The id of `entry`, which is at `address` in the program, and whether it is new; `None` if no ids are left.
    pub(super) fn intern(&mut self, entry: &[u8], address: usize) -> Option<(u32, bool)> {
        let hash = self.hasher.hash_one(entry);
        let found = self.index.find(hash, |&row| slice(&self.bytes, &self.ends, row) == entry).copied();
        let row = match found {
            Some(row) => row,
            None => {
                let id = self.free_id()?;
                self.next = id.checked_add(1)?;
                self.insert(hash, entry, id)
            }
        };
        let place = Recent::place(address, entry.len());
        self.recent.0[place] = u32::try_from(row).unwrap_or(Recent::NONE);
        Some((self.ids[row], found.is_none()))
    }

    fn free_id(&self) -> Option<u32> {
        (self.next..u32::MAX).find(|id| !self.occupied.contains_key(id))
    }

    /// Inserts an entry; returns its row.
    fn insert(&mut self, hash: u64, entry: &[u8], id: u32) -> usize {
        let Self { bytes, ends, ids, index, hasher, .. } = self;
        let row = ends.len();
        bytes.extend_from_slice(entry);
        ends.push(bytes.len());
        ids.push(id);
        index.insert_unique(hash, row, |&row| hasher.hash_one(slice(bytes, ends, row)));
        row
    }

    /// Adds an entry that the earlier part of the stream defines.
    pub(super) fn adopt(&mut self, entry: &[u8], id: u32) {
        self.occupied.insert(id, Occupation::Defined);
        self.insert(self.hasher.hash_one(entry), entry, id);
    }

    /// An id that the batch never defines: `wanted` if possible.
    pub(super) fn undefined(&mut self, wanted: u32) -> Option<u32> {
        let id = std::iter::once(wanted).chain((0..=u32::MAX).rev()).find(|id| !self.is_defined(*id))?;
        self.occupied.insert(id, Occupation::Undefined);
        Some(id)
    }

    fn is_defined(&self, id: u32) -> bool {
        match self.occupied.get(&id) {
            Some(occupation) => *occupation == Occupation::Defined,
            None => id < self.next,
        }
    }

    /// Removes everything and keeps the memory.
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
        self.ids.clear();
        self.index.clear();
        self.next = 0;
        self.occupied.clear();
    }
}

/// Whether two entries are equal: compares word by word, because most have few of them, and a call of the library's
/// comparison takes longer.
#[inline]
fn is_same(one: &[u8], other: &[u8]) -> bool {
    if one.len() != other.len() {
        return false;
    }
    match (one.last_chunk::<8>(), other.last_chunk()) {
        (Some(end), Some(other_end)) => {
            let mut words = one.as_chunks::<8>().0.iter().zip(other.as_chunks::<8>().0);
            end == other_end && words.all(|(one, other)| one == other)
        }
        _ => one == other,
    }
}

#[inline]
fn slice<'a>(bytes: &'a [u8], ends: &[usize], row: usize) -> &'a [u8] {
    let start = if row == 0 { 0 } else { ends[row - 1] };
    &bytes[start..ends[row]]
}

/// The types of events that the batch defines.
pub(super) struct Registry {
    rows: Vec<Type>,
    /// The written types of the fields, row after row. The first entry and the one after each row are `None`.
    fields: Vec<Option<FieldType>>,
    /// The heads used recently, by handle: handles are counted, so few collide.
    recent: [Head; RECENT],
    by_handle: HashMap<u64, usize>,
    by_content: HashTable<usize>,
    hasher: DefaultHashBuilder,
    by_id: HashMap<u16, usize>,
    /// Requested type ids, by handle; they outlive a batch.
    wanted: HashMap<u64, u16>,
    next: u16,
}

/// The index in the column of fields without a field.
pub(super) const ASIDE: usize = 0;

const RECENT: usize = 64;

/// The facts about a type that writing an event needs.
#[derive(Clone, Copy)]
pub(super) struct Head {
    handle: u64,
    pub(super) row: usize,
    /// The index of the first field in the column of fields.
    pub(super) first: usize,
    pub(super) type_id: [u8; 2],
    pub(super) has_timestamp: bool,
}

impl Head {
    /// The head of no type: handles never reach this number.
    const NONE: Self = Self { handle: u64::MAX, row: 0, first: ASIDE, type_id: [0; 2], has_timestamp: false };
}

impl Default for Registry {
    fn default() -> Self {
        Self {
            rows: Vec::new(),
            fields: vec![None],
            recent: [Head::NONE; RECENT],
            by_handle: HashMap::new(),
            by_content: HashTable::new(),
            hasher: DefaultHashBuilder::default(),
            by_id: HashMap::new(),
            wanted: HashMap::new(),
            next: 0,
        }
    }
}

/// A type of events that the batch defines.
pub(super) struct Type {
    pub(super) schema: Schema,
    pub(super) type_id: u16,
    /// The written types of the fields.
    pub(super) fields: Box<[FieldType]>,
    /// The index of the first of them in the column.
    pub(super) first: usize,
}

impl Registry {
    #[inline]
    pub(super) fn row(&self, row: usize) -> &Type {
        &self.rows[row]
    }

    /// The type of the field at an index of the column.
    #[inline]
    pub(super) fn field(&self, place: usize) -> Option<FieldType> {
        *self.fields.get(place)?
    }

    /// The head of a type, if it was used recently.
    #[inline]
    pub(super) fn recent(&self, schema: &Schema) -> Option<Head> {
        let head = self.recent[recent_place(schema.handle())];
        (head.handle == schema.handle()).then_some(head)
    }

    /// The head of the type of `row`, with `schema` as its handle.
    pub(super) fn head(&mut self, schema: &Schema, row: usize) -> Head {
        let Type { type_id, first, .. } = self.rows[row];
        let (handle, has_timestamp) = (schema.handle(), schema.has_timestamp());
        let head = Head { handle, row, first, type_id: type_id.to_le_bytes(), has_timestamp };
        self.recent[recent_place(handle)] = head;
        head
    }

    /// The row of a defined type.
    #[inline]
    pub(super) fn find(&self, schema: &Schema) -> Option<usize> {
        self.by_handle.get(&schema.handle()).copied()
    }

    /// Requests a type id for all definitions of the type.
    pub(super) fn want(&mut self, schema: &Schema, type_id: u16) {
        self.wanted.insert(schema.handle(), type_id);
    }

    /// Defines a type with an unknown handle. Returns its row, and whether it is new.
    pub(super) fn define(&mut self, schema: &Schema, dialect: Dialect) -> Result<(usize, bool), Invalid> {
        let hash = self.hash(schema);
        let known = self.by_content.find(hash, |&row| self.rows[row].schema == *schema).copied();
        if let Some(row) = known.filter(|&row| self.fits_wish(schema, row)) {
            self.by_handle.insert(schema.handle(), row);
            return Ok((row, false));
        }
        let fields = schema.fields().iter().map(|field| written(schema, field.field_type, dialect));
        let fields = fields.collect::<Result<_, _>>()?;
        let wish = self.wanted.get(&schema.handle()).copied();
        let type_id = match wish.filter(|type_id| !self.by_id.contains_key(type_id)) {
            Some(type_id) => type_id,
            None => self.free_id(dialect).ok_or_else(|| no_type_id(schema))?,
        };
        Ok((self.insert(schema, type_id, fields), true))
    }

    fn fits_wish(&self, schema: &Schema, row: usize) -> bool {
        self.wanted.get(&schema.handle()).is_none_or(|&wanted| wanted == self.rows[row].type_id)
    }

    fn insert(&mut self, schema: &Schema, type_id: u16, fields: Box<[FieldType]>) -> usize {
        let row = self.rows.len();
        let hash = self.hash(schema);
        let first = self.fields.len();
        self.fields.extend(fields.iter().copied().map(Some));
        self.fields.push(None);
        self.rows.push(Type { schema: schema.clone(), type_id, fields, first });
        self.by_handle.insert(schema.handle(), row);
        self.by_id.insert(type_id, row);
        let Self { rows, by_content, hasher, .. } = self;
        by_content.insert_unique(hash, row, |&row| content_hash(hasher, &rows[row].schema));
        row
    }

    /// The next free type id: first those without a fixed place, then the others.
    fn free_id(&mut self, dialect: Dialect) -> Option<u16> {
        let first = dialect.first_type_id();
        let start = self.next.max(first);
        let mut candidates = (start..=u16::MAX).chain((0..first).rev());
        let free = candidates.find(|id| !self.by_id.contains_key(id))?;
        self.next = self.next.max(if free >= first { free } else { u16::MAX });
        Some(free)
    }

    /// Adds the types that the earlier part of the stream defines.
    pub(super) fn adopt(&mut self, batch: &Batch) {
        for row in batch.rows() {
            if batch.find(row.type_id).is_some_and(|(_, current)| std::ptr::eq(current, row)) {
                self.insert(&row.schema, row.type_id, row.types.clone());
            }
        }
    }

    fn hash(&self, schema: &Schema) -> u64 {
        content_hash(&self.hasher, schema)
    }

    /// Removes the types; keeps the memory and the requested ids.
    pub(super) fn clear(&mut self) {
        self.rows.clear();
        self.fields.truncate(1);
        self.recent = [Head::NONE; RECENT];
        self.by_handle.clear();
        self.by_content.clear();
        self.by_id.clear();
        self.next = 0;
    }

    /// Removes the requested ids.
    pub(super) fn forget_wishes(&mut self) {
        self.wanted.clear();
    }
}

fn no_type_id(schema: &Schema) -> Invalid {
    let name = schema.name();
    Invalid::new(format!("too many event types in one batch: expected at most 65536, no room for {name}"))
}

#[inline]
fn recent_place(handle: u64) -> usize {
    // Less than the number of places.
    usize::try_from(handle % RECENT as u64).unwrap_or_default()
}

fn content_hash(hasher: &DefaultHashBuilder, schema: &Schema) -> u64 {
    hasher.hash_one(schema.definition())
}

/// The type as which a field is written.
fn written(schema: &Schema, field_type: FieldType, dialect: Dialect) -> Result<FieldType, Invalid> {
    match (dialect, field_type.kind) {
        (Dialect::Newest, _) => Ok(field_type),
        (Dialect::V032, FieldKind::PooledStack) => Ok(FieldType { kind: FieldKind::Stack, ..field_type }),
        (Dialect::V032, kind @ (FieldKind::List | FieldKind::Map)) => {
            let (event, kind) = (schema.name(), kind.name());
            Err(Invalid::new(format!(
                "unsupported field type in {event}: expected one of 0.3.2, found {kind}"
            )))
        }
        (Dialect::V032, _) => Ok(field_type),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_count_from_zero_past_those_that_are_taken() {
        let mut strings = Interned::default();
        strings.adopt(b"old", 1);
        assert_eq!(strings.undefined(2), Some(2));
        let ids = [b"a".as_slice(), b"old", b"b", b"a"].map(|entry| strings.intern(entry, 0).unwrap());
        assert_eq!(ids, [(0, true), (1, false), (3, true), (0, false)]);
        assert_eq!([strings.undefined(3), strings.undefined(2)], [Some(u32::MAX), Some(2)]);
        strings.clear();
        assert_eq!(strings.intern(b"old", 0), Some((0, true)));
    }

    #[test]
    fn every_type_id_is_given_out_once_and_then_none() {
        for dialect in [Dialect::Newest, Dialect::V032] {
            let mut registry = Registry::default();
            let mut seen = vec![false; 65_536];
            for number in 0..65_536 {
                let schema = Schema::new(&number.to_string(), []).unwrap();
                let (row, is_new) = registry.define(&schema, dialect).unwrap();
                let type_id = usize::from(registry.row(row).type_id);
                assert!(is_new && !std::mem::replace(&mut seen[type_id], true), "{type_id}");
            }
            let one_more = Schema::new("one more", []).unwrap();
            assert!(registry.define(&one_more, dialect).is_err());
        }
    }
}
