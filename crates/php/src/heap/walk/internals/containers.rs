//! Containers, which keep their contents outside of their properties.

use borehole_heap::{HeapSink, LocationType, NodeId, NodeType};

use super::InternalsLayout;
use crate::heap::walk::{Extent, HeapReader, HeapWalker, ObjectView, VisitKind};
use crate::layout::fixed;
use crate::release::PhpRelease;
use crate::remote::{moved, u32_at, u64_at};

/// A used bucket of a container's hash table.
pub(crate) struct ContainerEntry {
    hash: u64,
    /// The address of the value.
    pub(crate) value: u64,
    /// The value, if it is an address.
    pub(crate) pointer: u64,
}

/// The `HashTable` at `address`: the start of its memory, its used size, and its entries.
pub(crate) fn table(address: u64, heap: &HeapReader<'_>) -> Option<(u64, u64, Vec<ContainerEntry>)> {
    let header: [u8; fixed::TABLE_SIZE] = heap.view.array(address)?;
    let used = u32_at(&header, fixed::TABLE_USED).filter(|&used| used > 0)?;
    let is_packed = u32_at(&header, fixed::TABLE_FLAGS)? & fixed::TABLE_PACKED != 0;
    let stride = if is_packed { heap.layout.packed_element as u64 } else { fixed::BUCKET_SIZE as u64 };
    let buckets = u64_at(&header, fixed::TABLE_BUCKETS)?;
    let start = buckets.wrapping_sub(u64::from(u32_at(&header, fixed::TABLE_MASK)?.wrapping_neg()) * 4);
    // The header may claim more than there is.
    let room = heap.room(start)?;
    let end = buckets.saturating_add(u64::from(used) * stride).min(start.saturating_add(room));
    let there = heap.view.length(buckets, end.saturating_sub(buckets));
    let entry = |number: u64| {
        let value = buckets + number * stride;
        let bucket: [u8; 16] = heap.view.array(value)?;
        let hash = if is_packed { number } else { heap.view.u64(moved(value, fixed::BUCKET_HASH))? };
        (bucket[8] != 0).then_some(ContainerEntry { hash, value, pointer: u64_at(&bucket, 0)? })
    };
    let count = there / stride.max(1);
    Some((start, end.saturating_sub(start), (0..count).filter_map(entry).collect()))
}

/// Adds the memory at `address`, with its elements as children.
fn elements<S: HeapSink>(
    object: &ObjectView,
    address: u64,
    bytes: u64,
    count: usize,
    walker: &mut HeapWalker<'_, S>,
) -> Option<NodeId> {
    let extent = Extent::new(LocationType::INTERNAL_DATA, bytes);
    let kind = NodeType::ARRAY_ELEMENTS;
    let node = walker.block(object.node, "storage", kind, address, extent)?;
    walker.count_attribute(node, count as u64);
    Some(node)
}

/// Adds an element that is a block itself; `None` if it was added before.
fn element<S: HeapSink>(
    parent: NodeId,
    number: u64,
    address: u64,
    size: u64,
    walker: &mut HeapWalker<'_, S>,
) -> Option<NodeId> {
    let (kind, extent) = (NodeType::ARRAY_ELEMENT, Extent::new(LocationType::INTERNAL_DATA, size));
    walker.block(parent, &number.to_string(), kind, address, extent)
}

/// Visits a `WeakMap`: it holds its values, but not the objects that are their keys.
pub(super) fn weak_map<S: HeapSink>(object: &ObjectView, walker: &mut HeapWalker<'_, S>) {
    let Some((start, bytes, entries)) = table(object.start, &walker.heap) else { return };
    let map = walker.part(object.node, "weak_map", NodeType::WEAK_MAP);
    let (kind, extent) = (NodeType::ARRAY_ELEMENTS, Extent::new(LocationType::ARRAY_TABLE, bytes));
    let Some(node) = walker.block(map, "entries", kind, start, extent) else { return };
    walker.count_attribute(node, entries.len() as u64);
    // The key is the address of the object; since 8.2, without the bits that are always 0.
    let shift = if PhpRelease::of_version(8, 2) <= Some(walker.heap.php.identity.release) { 3 } else { 0 };
    for (number, entry) in entries.iter().enumerate() {
        let element = walker.part(node, &number.to_string(), NodeType::ARRAY_ELEMENT);
        walker.refers_weakly(element, "key", VisitKind::Object, entry.hash << shift);
        walker.holds(element, "value", entry.value);
    }
}

/// Visits an `SplObjectStorage`: a hash table of blocks, each with an object and its associated data.
pub(super) fn object_storage<S: HeapSink>(
    object: &ObjectView,
    layout: &InternalsLayout,
    walker: &mut HeapWalker<'_, S>,
) {
    let Some((start, bytes, entries)) = table(object.start, &walker.heap) else { return };
    let Some(node) = elements(object, start, bytes, entries.len(), walker) else { return };
    for (number, entry) in entries.iter().enumerate() {
        let size = layout.storage_value as u64 + 16;
        let Some(element) = element(node, number as u64, entry.pointer, size, walker) else { continue };
        let key = walker.heap.view.u64(entry.pointer).unwrap_or_default();
        walker.refers(element, "key", VisitKind::Object, key);
        walker.holds(element, "value", moved(entry.pointer, layout.storage_value));
    }
}

pub(super) fn fixed_array<S: HeapSink>(object: &ObjectView, walker: &mut HeapWalker<'_, S>) {
    let pair = |address, walker: &HeapWalker<'_, S>| {
        [0, 8].map(|offset| walker.heap.view.u64(moved(address, offset)).unwrap_or_default())
    };
    let [mut size, mut values] = pair(object.start, walker);
    // In 7.0 the pair is a block itself. No array is as long as an address.
    if let Some(room) = walker.heap.room(size) {
        walker.data(object.node, "array", size, room.min(16));
        [size, values] = pair(size, walker);
    }
    row(object, values, size, 16, walker);
}

/// Visits an `SplHeap`: a pointer leads to its `spl_heap`, which begins with a pointer to its elements.
pub(super) fn heap<S: HeapSink>(object: &ObjectView, stride: usize, walker: &mut HeapWalker<'_, S>) {
    let heap = walker.heap.view.u64(object.start).unwrap_or_default();
    let Some(room) = walker.heap.room(heap) else { return };
    walker.data(object.node, "heap", heap, room.min(HEAP_BYTES));
    let count = walker.heap.view.u32(moved(heap, HEAP_COUNT)).unwrap_or_default();
    row(object, walker.heap.view.u64(heap).unwrap_or_default(), u64::from(count), stride, walker);
}

/// `spl_heap.count`, after the elements and three functions.
const HEAP_COUNT: usize = 32;
/// The maximum size of `spl_heap`.
const HEAP_BYTES: u64 = 64;

/// Adds `count` elements of `stride` bytes at `address`, each with one value, or with two: data and priority.
fn row<S: HeapSink>(
    object: &ObjectView,
    address: u64,
    count: u64,
    stride: usize,
    walker: &mut HeapWalker<'_, S>,
) {
    let Some(room) = walker.heap.room(address) else { return };
    let count = count.min(room / stride as u64);
    let number = usize::try_from(count).unwrap_or(usize::MAX);
    let Some(node) = elements(object, address, count * stride as u64, number, walker) else { return };
    // A block may claim to be larger than its memory: the first element that is not there counts as missing.
    let there = walker.heap.view.length(address, count * stride as u64) / stride as u64;
    for number in 0..number.min(usize::try_from(there + 1).unwrap_or(usize::MAX)) {
        let value = moved(address, number * stride);
        let name = number.to_string();
        if stride == 16 {
            walker.holds(node, &name, value);
        } else {
            let element = walker.part(node, &name, NodeType::ARRAY_ELEMENT);
            walker.holds(element, "data", value);
            walker.holds(element, "priority", moved(value, 16));
        }
    }
}

/// The maximum size of `spl_ptr_llist`.
const LIST_BYTES: u64 = 40;

/// Visits an `SplDoublyLinkedList`: a pointer leads to its `spl_ptr_llist`, which begins with a pointer to its first element.
pub(super) fn linked_list<S: HeapSink>(
    object: &ObjectView,
    layout: &InternalsLayout,
    walker: &mut HeapWalker<'_, S>,
) {
    let list = walker.heap.view.u64(object.start).unwrap_or_default();
    let Some(room) = walker.heap.room(list) else { return };
    let (kind, extent) =
        (NodeType::ARRAY_ELEMENTS, Extent::new(LocationType::INTERNAL_DATA, room.min(LIST_BYTES)));
    let Some(node) = walker.block(object.node, "storage", kind, list, extent) else {
        return;
    };
    let mut next = walker.heap.view.u64(list).unwrap_or_default();
    let mut number = 0_u64;
    while walker.heap.room(next).is_some() {
        // It ends when it returns to an element that it has already passed.
        let size = layout.list_value as u64 + 16;
        let Some(element) = element(node, number, next, size, walker) else { break };
        walker.holds(element, "value", moved(next, layout.list_value));
        next = walker.heap.view.u64(moved(next, 8)).unwrap_or_default();
        number += 1;
    }
    walker.count_attribute(node, number);
}
