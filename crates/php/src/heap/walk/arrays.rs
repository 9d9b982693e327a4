//! Hash tables: PHP's arrays, and the engine's tables of functions, classes and constants.

use borehole_heap::{HeapSink, LocationType, NodeId, NodeType, Region, StringId};

use super::seen::BlockSpot;
use super::task::{Entries, EntryKind};
use super::values::Zval;
use super::{Damage, Extent, HeapReader, HeapWalker, NodeLink, VisitKind, WalkTask};
use crate::layout::fixed;
use crate::remote::{u32_at, u64_at};

const ELEMENTS: usize = 28;
/// `HashTable.nTableSize`.
const CAPACITY: usize = 32;

/// The table of a `HashTable`, according to its header.
#[derive(Clone, Copy, Debug)]
pub(super) struct HashTable {
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

#[derive(Clone, Copy, Debug)]
pub(super) struct ArrayBucket {
    pub(super) value: Zval,
    pub(super) hash: u64,
    /// The address of the key's `zend_string`; 0 if the hash is the key.
    pub(super) key: u64,
    /// The place of the value, if that is a variable of a frame, which holds it.
    lent: Option<u64>,
}

impl<S: HeapSink> HeapWalker<'_, S> {
    pub(super) fn array(&mut self, link: NodeLink, address: u64) {
        let Some((node, spot)) = self.graph.enter(NodeType::ARRAY_HEADER, link, address) else { return };
        let Some(header) = self.heap.view.array::<{ fixed::TABLE_SIZE }>(address) else {
            return self.missing(node, address);
        };
        self.header(node, &spot, &header);
        let table = self.heap.table(&header);
        if table.is_torn {
            self.damage(node, Damage::Torn);
        }
        let [unused, elements] = self.parts(node, &table);
        if address == self.heap.globals_address() {
            self.globals = Some([unused, elements]);
        }
    }

    pub(super) fn header_at(&mut self, node: NodeId, address: u64) {
        if let Some(header) = self.heap.view.array(address) {
            self.header(node, &self.heap.spot(address), &header);
        }
    }

    fn header(&mut self, node: NodeId, spot: &BlockSpot, header: &[u8; fixed::TABLE_SIZE]) {
        let counted = u32_at(header, 0).zip(u32_at(header, 4));
        let extent = Extent { counted, ..Extent::new(LocationType::ARRAY, fixed::TABLE_SIZE as u64) };
        self.graph.locate(node, spot, extent);
        let flags = counted.map_or(0, |counted| counted.1);
        if flags & self.heap.layout.header_kind != u32::from(fixed::KIND_ARRAY) {
            self.damage(node, Damage::Torn);
        }
    }

    pub(super) fn parts(&mut self, node: NodeId, table: &HashTable) -> [NodeId; 2] {
        let unused = self
            .graph
            .node(NodeType::ARRAY_POSSIBLE_OVERHEAD, NodeLink::strong(node, self.words.possible_unused_area));
        let spot = self.heap.spot(table.start);
        let elements_link = NodeLink::strong(node, self.words.array_elements);
        if !table.is_there {
            let elements = self.graph.node(NodeType::ARRAY_ELEMENTS, elements_link);
            self.count_attribute(elements, 0);
            return [unused, elements];
        }
        if let Some(elements) = self.graph.seen.node(&spot) {
            // Two arrays never share a table.
            self.graph.edge(elements_link, elements, false);
            self.damage(node, Damage::Torn);
            return [unused, elements];
        }
        self.unused_part(unused, &spot, table);
        let elements = self.graph.node_at(NodeType::ARRAY_ELEMENTS, elements_link, &spot);
        self.table_location(elements, &spot, table);
        self.count_attribute(elements, u64::from(table.elements));
        self.start_entries(elements, table, EntryKind::Element);
        [unused, elements]
    }

    fn unused_part(&mut self, node: NodeId, spot: &BlockSpot, table: &HashTable) {
        let behind = BlockSpot { address: table.start.wrapping_add(table.used_bytes), block: spot.block };
        let extent = Extent::new(LocationType::ARRAY_TABLE_OVERHEAD, table.all_bytes - table.used_bytes);
        let end = table.start.saturating_add(table.all_bytes);
        let own = spot.block.filter(|block| block.address == table.start);
        let overhead = own.map_or(0, |block| block.end().saturating_sub(end));
        self.graph.locate_within(node, &behind, extent, overhead);
    }

    fn table_location(&mut self, node: NodeId, spot: &BlockSpot, table: &HashTable) {
        self.graph.locate_within(node, spot, Extent::new(LocationType::ARRAY_TABLE, table.used_bytes), 0);
        self.flag(node, self.words.is_packed, table.is_packed);
    }

    /// Adds the table of the `HashTable` at `address` as a location of `node`, and its entries as children.
    pub(super) fn engine_table(&mut self, node: NodeId, address: u64, each: EntryKind) {
        let Some(header) = self.heap.view.array::<{ fixed::TABLE_SIZE }>(address) else {
            return self.missing(node, address);
        };
        let table = self.heap.table(&header);
        if table.is_torn {
            self.damage(node, Damage::Torn);
        }
        self.count_attribute(node, u64::from(table.elements));
        let spot = self.heap.spot(table.start);
        if !table.is_there || self.graph.seen.node(&spot).is_some() {
            return;
        }
        self.graph.seen.insert(&spot, node);
        self.table_location(node, &spot, &table);
        if table.all_bytes > table.used_bytes {
            self.unused_part(node, &spot, &table);
        }
        self.start_entries(node, &table, each);
    }

    fn start_entries(&mut self, node: NodeId, table: &HashTable, each: EntryKind) {
        if table.used > 0 {
            let HashTable { buckets, used, is_values: is_packed, .. } = *table;
            self.pending.tasks.push(WalkTask::Entries(Entries {
                node,
                buckets,
                at: 0,
                used,
                each,
                is_packed,
            }));
        }
    }

    pub(super) fn entries(&mut self, mut entries: Entries) {
        while entries.at < entries.used {
            if self.is_given_up() {
                return;
            }
            let Some(bucket) = self.heap.bucket(&entries) else {
                return self.missing(entries.node, entries.buckets);
            };
            entries.at += 1;
            if bucket.value.kind == 0 {
                continue;
            }
            let Some(value) = self.heap.direct(bucket.value) else { continue };
            let bucket = ArrayBucket { value, lent: self.lent(bucket.value), ..bucket };
            if entries.each == EntryKind::Element && !value.leads_on() {
                self.element(entries.node, bucket);
                continue;
            }
            self.pending.tasks.push(WalkTask::Entries(entries));
            return self.entry(entries.node, entries.each, bucket);
        }
    }

    #[inline]
    fn element(&mut self, node: NodeId, bucket: ArrayBucket) {
        let element = if bucket.key == 0 {
            let name = self.graph.number(bucket.hash.cast_signed());
            self.graph.node(NodeType::ARRAY_ELEMENT, NodeLink::strong(node, name))
        } else {
            self.named_by(bucket.key, |walker, name| {
                let element = walker.graph.node(NodeType::ARRAY_ELEMENT, NodeLink::strong(node, name));
                NodeLink::strong(element, walker.words.key)
            })
        };
        let link = NodeLink::strong(element, self.words.value);
        match bucket.lent {
            Some(place) if bucket.value.kind >= fixed::KIND_STRING => {
                self.weakly(link, VisitKind::Value, place);
            }
            _ => self.value(link, bucket.value),
        }
    }

    pub(super) fn key(&mut self, bucket: &ArrayBucket) -> StringId {
        match bucket.key {
            0 => self.graph.number(bucket.hash.cast_signed()),
            key => self.text_at(key),
        }
    }

    /// The name of a part of the program, which is never redacted.
    fn own_name(&mut self, bucket: &ArrayBucket) -> StringId {
        if self.redaction.is_none() || bucket.key == 0 {
            return self.key(bucket);
        }
        let name = self.text_bytes(bucket.key);
        self.graph.sink.string(&name)
    }

    fn entry(&mut self, node: NodeId, each: EntryKind, bucket: ArrayBucket) {
        if each == EntryKind::Element {
            return self.element(node, bucket);
        }
        let name = match each {
            EntryKind::Function | EntryKind::Class | EntryKind::ClassConstant | EntryKind::PropertyInfo => {
                self.own_name(&bucket)
            }
            _ => self.key(&bucket),
        };
        let link = NodeLink::strong(node, name);
        let pointer = bucket.value.word;
        match each {
            EntryKind::Element => {}
            EntryKind::Function => self.function(link, pointer),
            EntryKind::Class => self.class(link, pointer),
            EntryKind::Constant => self.constant(link, pointer),
            EntryKind::ClassConstant => self.class_constant(link, bucket),
            EntryKind::PropertyInfo => self.property_info(link, pointer, bucket.key),
            EntryKind::Key => self.string(link, bucket.key),
            EntryKind::Resource => self.listed(link, bucket.value),
            EntryKind::ListedResource => self.listed_weakly(link, bucket.value),
            EntryKind::Ini => self.directive(link, pointer),
            EntryKind::Attribute => self.attribute(link, pointer),
            EntryKind::Weak => self.weak(link, pointer),
            EntryKind::Callable => self.callable(link, pointer),
        }
    }
}

impl HeapReader<'_> {
    /// The table described by the `HashTable` with the bytes `header`, as far as the table's block confirms it.
    pub(super) fn table(&self, header: &[u8; fixed::TABLE_SIZE]) -> HashTable {
        let number = |offset| u32_at(header, offset).unwrap_or_default();
        let flags = number(fixed::TABLE_FLAGS);
        let is_there = flags & fixed::TABLE_INITIALIZED != self.layout.array_without_table;
        let is_packed = flags & fixed::TABLE_PACKED != 0;
        let is_values = is_packed && self.layout.packed_element == 16;
        let size = if is_values { 16 } else { fixed::BUCKET_SIZE as u64 };
        let hash_bytes = u64::from(0_u32.wrapping_sub(number(fixed::TABLE_MASK))) * 4;
        let buckets = u64_at(header, fixed::TABLE_BUCKETS).unwrap_or_default();
        let start = buckets.wrapping_sub(hash_bytes);
        let (used, capacity) = (number(fixed::TABLE_USED), number(CAPACITY));
        let mut table = HashTable {
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
    fn fit(&self, table: &mut HashTable, size: u64) {
        let block = self.blocks.find(table.start);
        let is_in_arena = block.is_some_and(|block| block.region == Region::COMPILER_ARENA);
        if is_in_arena || (block.is_none() && self.view.is_shared(table.start)) {
            // Part of a script that opcache has laid out: of its tables, only the used part is there.
            table.all_bytes = table.used_bytes;
        }
        if let Some(block) = block {
            let room = block.end() - table.start;
            let is_own = block.address == table.start || is_in_arena;
            table.is_torn |= !is_own || table.all_bytes > room;
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

    /// The next bucket; its value has the type 0 if the bucket is unused.
    #[inline]
    fn bucket(&self, entries: &Entries) -> Option<ArrayBucket> {
        let at = u64::from(entries.at);
        if entries.is_packed {
            let bytes: [u8; 16] = self.view.array(entries.buckets.wrapping_add(at * 16))?;
            return Some(ArrayBucket { value: Zval::parse(&bytes)?, hash: at, key: 0, lent: None });
        }
        let bytes: [u8; fixed::BUCKET_SIZE] = self.view.array(entries.buckets.wrapping_add(at * 32))?;
        let [hash, key] = [fixed::BUCKET_HASH, fixed::BUCKET_KEY].map(|offset| u64_at(&bytes, offset));
        Some(ArrayBucket { value: Zval::parse(&bytes)?, hash: hash?, key: key?, lent: None })
    }
}
