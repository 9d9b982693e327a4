//! Hash tables: PHP's arrays, and the engine's tables of functions, classes and constants.

use borehole_heap::{HeapSink, LocationType, NodeId, NodeType, StringId};

use super::seen::Spot;
use super::task::{Each, Entries};
use super::values::Zval;
use super::{Damage, Link, Shape, Task, Walker};
use crate::layout::fixed;
use crate::remote::{u32_at, u64_at};

/// `HashTable.u.flags`.
const FLAGS: usize = 8;
/// `HASH_FLAG_PACKED`: the keys are 0, 1, 2, ….
const PACKED: u32 = 4;
/// `HashTable.nTableMask`.
const MASK: usize = 12;
const ELEMENTS: usize = 28;
/// `HashTable.nTableSize`.
const CAPACITY: usize = 32;

/// The table of a `HashTable`, according to its header.
#[derive(Clone, Copy, Debug)]
pub(super) struct Table {
    /// The start of the table's block: first the hashes, then the buckets.
    start: u64,
    buckets: u64,
    /// The size of the hashes and the used buckets.
    used_bytes: u64,
    all_bytes: u64,
    pub(super) used: u32,
    pub(super) elements: u32,
    /// Whether its keys are consecutive numbers.
    is_packed: bool,
    /// Whether its buckets are only values.
    is_values: bool,
    /// Whether it has its own table, not the shared one of empty arrays.
    is_there: bool,
    pub(super) is_torn: bool,
}

/// A bucket in use.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bucket {
    pub(super) value: Zval,
    pub(super) hash: u64,
    /// The address of the key's `zend_string`; 0 if the hash is the key.
    pub(super) key: u64,
}

impl<S: HeapSink> Walker<'_, S> {
    /// Visits the array at `address`.
    pub(super) fn array(&mut self, link: Link, address: u64) {
        let spot = self.spot(address);
        if self.again(&spot, link) {
            return;
        }
        let node = self.node_at(NodeType::ARRAY_HEADER, link, &spot);
        let Some(header) = self.view.array::<{ fixed::TABLE_SIZE }>(address) else {
            return self.damage(node, Damage::Missing);
        };
        self.header(node, &spot, &header);
        let table = self.table(&header);
        if table.is_torn {
            self.damage(node, Damage::Torn);
        }
        let [unused, elements] = self.parts(node, &table);
        if address == self.globals_address() {
            self.globals = Some([unused, elements]);
        }
    }

    /// Adds the location of a `HashTable`.
    pub(super) fn header(&mut self, node: NodeId, spot: &Spot, header: &[u8; fixed::TABLE_SIZE]) {
        let counted = u32_at(header, 0).zip(u32_at(header, 4));
        let shape = Shape { counted, ..Shape::new(LocationType::ARRAY, fixed::TABLE_SIZE as u64) };
        self.locate(node, spot, shape);
        let flags = counted.map_or(0, |counted| counted.1);
        if flags & self.layout.header_kind != u32::from(fixed::KIND_ARRAY) {
            self.damage(node, Damage::Torn);
        }
    }

    /// Adds the nodes of the table's unused part and of its elements.
    pub(super) fn parts(&mut self, node: NodeId, table: &Table) -> [NodeId; 2] {
        let unused =
            self.node(NodeType::ARRAY_POSSIBLE_OVERHEAD, Link::strong(node, self.words.possible_unused_area));
        let spot = self.spot(table.start);
        let elements_link = Link::strong(node, self.words.array_elements);
        if !table.is_there {
            let elements = self.node(NodeType::ARRAY_ELEMENTS, elements_link);
            self.count_attribute(elements, 0);
            return [unused, elements];
        }
        if let Some(elements) = self.seen.node(&spot) {
            // Two arrays never share a table.
            self.edge(elements_link, elements, false);
            self.damage(node, Damage::Torn);
            return [unused, elements];
        }
        self.unused_part(unused, &spot, table);
        let elements = self.node_at(NodeType::ARRAY_ELEMENTS, elements_link, &spot);
        self.table_location(elements, &spot, table);
        self.count_attribute(elements, u64::from(table.elements));
        self.start_entries(elements, table, Each::Element);
        [unused, elements]
    }

    /// Adds the location of the unused part of a table.
    fn unused_part(&mut self, node: NodeId, spot: &Spot, table: &Table) {
        let behind = Spot { address: table.start.wrapping_add(table.used_bytes), block: spot.block };
        let shape = Shape::new(LocationType::ARRAY_TABLE_OVERHEAD, table.all_bytes - table.used_bytes);
        let end = table.start.saturating_add(table.all_bytes);
        let overhead = spot.block.map_or(0, |block| block.end().saturating_sub(end));
        self.locate_within(node, &behind, shape, overhead);
    }

    /// Adds the location of the used part of a table.
    pub(super) fn table_location(&mut self, node: NodeId, spot: &Spot, table: &Table) {
        self.locate_within(node, spot, Shape::new(LocationType::ARRAY_TABLE, table.used_bytes), 0);
        self.flag(node, self.words.is_packed, table.is_packed);
    }

    /// Adds the table of the `HashTable` at `address` as a location of `node`, and its entries as children.
    pub(super) fn engine_table(&mut self, node: NodeId, address: u64, each: Each) {
        let Some(header) = self.view.array::<{ fixed::TABLE_SIZE }>(address) else {
            return self.damage(node, Damage::Missing);
        };
        let table = self.table(&header);
        if table.is_torn {
            self.damage(node, Damage::Torn);
        }
        self.count_attribute(node, u64::from(table.elements));
        let spot = self.spot(table.start);
        if !table.is_there || self.seen.node(&spot).is_some() {
            return;
        }
        self.seen.insert(&spot, node);
        self.table_location(node, &spot, &table);
        let shape = Shape::new(LocationType::ARRAY_TABLE_OVERHEAD, table.all_bytes - table.used_bytes);
        if shape.size > 0 {
            let behind = Spot { address: table.start.wrapping_add(table.used_bytes), block: spot.block };
            let end = table.start.saturating_add(table.all_bytes);
            let overhead = spot.block.map_or(0, |block| block.end().saturating_sub(end));
            self.locate_within(node, &behind, shape, overhead);
        }
        self.start_entries(node, &table, each);
    }

    fn start_entries(&mut self, node: NodeId, table: &Table, each: Each) {
        if table.used > 0 {
            let Table { buckets, used, is_values: is_packed, .. } = *table;
            self.work.push(Task::Entries(Entries { node, buckets, at: 0, used, each, is_packed }));
        }
    }

    /// The table described by the `HashTable` with the bytes `header`, as far as the table's block confirms it.
    pub(super) fn table(&self, header: &[u8; fixed::TABLE_SIZE]) -> Table {
        let number = |offset| u32_at(header, offset).unwrap_or_default();
        let flags = number(FLAGS);
        let is_there = flags & self.layout.array_flag != self.layout.array_without_table;
        let is_packed = flags & PACKED != 0;
        let is_values = is_packed && self.layout.packed_element == 16;
        let size = if is_values { 16 } else { fixed::BUCKET_SIZE as u64 };
        let hash_bytes = u64::from(0_u32.wrapping_sub(number(MASK))) * 4;
        let buckets = u64_at(header, fixed::TABLE_BUCKETS).unwrap_or_default();
        let start = buckets.wrapping_sub(hash_bytes);
        let (used, capacity) = (number(fixed::TABLE_USED), number(CAPACITY));
        let mut table = Table {
            start,
            buckets,
            used_bytes: hash_bytes + u64::from(used) * size,
            all_bytes: hash_bytes + u64::from(capacity) * size,
            used: if is_there { used } else { 0 },
            elements: number(ELEMENTS),
            is_packed,
            is_values,
            is_there,
            is_torn: used > capacity,
        };
        if is_there {
            self.fit(&mut table, size);
        }
        table
    }

    /// Cuts off the part that is outside of the table's block.
    fn fit(&self, table: &mut Table, size: u64) {
        if let Some(block) = self.blocks.find(table.start) {
            let room = block.end() - table.start;
            table.is_torn |= block.address != table.start || table.all_bytes > room;
            table.all_bytes = table.all_bytes.min(room);
        }
        if table.used_bytes > table.all_bytes {
            table.is_torn = true;
            table.used_bytes = table.all_bytes;
            let hash_bytes = table.buckets.wrapping_sub(table.start);
            let fitting = table.all_bytes.saturating_sub(hash_bytes) / size;
            table.used = table.used.min(u32::try_from(fitting).unwrap_or(u32::MAX));
        }
    }

    /// Continues with a hash table, until an entry leads to further work.
    pub(super) fn entries(&mut self, mut entries: Entries) {
        while entries.at < entries.used {
            if self.is_given_up() {
                return;
            }
            let Some(bucket) = self.bucket(&entries) else {
                return self.damage(entries.node, Damage::Missing);
            };
            entries.at += 1;
            if bucket.value.kind == 0 {
                continue;
            }
            let Some(value) = self.direct(bucket.value) else { continue };
            let bucket = Bucket { value, ..bucket };
            if entries.each == Each::Element && !self.leads_on(value) {
                self.element(entries.node, bucket);
                continue;
            }
            self.work.push(Task::Entries(entries));
            return self.entry(entries.node, entries.each, bucket);
        }
    }

    /// The next bucket; its value has the type 0 if the bucket is unused.
    #[inline]
    fn bucket(&self, entries: &Entries) -> Option<Bucket> {
        let at = u64::from(entries.at);
        if entries.is_packed {
            let bytes: [u8; 16] = self.view.array(entries.buckets.wrapping_add(at * 16))?;
            return Some(Bucket { value: Zval::parse(&bytes)?, hash: at, key: 0 });
        }
        let bytes: [u8; fixed::BUCKET_SIZE] = self.view.array(entries.buckets.wrapping_add(at * 32))?;
        let [hash, key] = [fixed::BUCKET_HASH, fixed::BUCKET_KEY].map(|offset| u64_at(&bytes, offset));
        Some(Bucket { value: Zval::parse(&bytes)?, hash: hash?, key: key? })
    }

    #[inline]
    fn element(&mut self, node: NodeId, bucket: Bucket) {
        let element = if bucket.key == 0 {
            let name = self.number(bucket.hash.cast_signed());
            self.node(NodeType::ARRAY_ELEMENT, Link::strong(node, name))
        } else {
            self.named_by(bucket.key, |walker, name| {
                let element = walker.node(NodeType::ARRAY_ELEMENT, Link::strong(node, name));
                Link::strong(element, walker.words.key)
            })
        };
        self.value(Link::strong(element, self.words.value), bucket.value);
    }

    /// The name of a bucket.
    pub(super) fn key(&mut self, bucket: &Bucket) -> StringId {
        match bucket.key {
            0 => self.number(bucket.hash.cast_signed()),
            key => self.text_at(key),
        }
    }

    /// The name of a part of the program, which is never redacted.
    fn own_name(&mut self, bucket: &Bucket) -> StringId {
        if self.redaction.is_none() || bucket.key == 0 {
            return self.key(bucket);
        }
        let name = self.text_bytes(bucket.key);
        self.sink.string(&name)
    }

    fn entry(&mut self, node: NodeId, each: Each, bucket: Bucket) {
        if each == Each::Element {
            return self.element(node, bucket);
        }
        let name = match each {
            Each::Function | Each::Class | Each::ClassConstant | Each::PropertyInfo => self.own_name(&bucket),
            _ => self.key(&bucket),
        };
        let link = Link::strong(node, name);
        let pointer = bucket.value.word;
        match each {
            Each::Element => {}
            Each::Function => self.function(link, pointer),
            Each::Class => self.class(link, pointer),
            Each::Constant => self.constant(link, pointer),
            Each::ClassConstant => self.class_constant(link, bucket),
            Each::PropertyInfo => self.property_info(link, pointer, bucket.key),
            Each::Key => self.string(link, bucket.key),
            Each::Resource => self.listed(link, bucket.value),
            Each::Ini => self.directive(link, pointer),
            Each::Attribute => self.attribute(link, pointer),
            Each::Weak => self.weak(link, pointer),
            Each::Callable => self.callable(link, pointer),
        }
    }
}
