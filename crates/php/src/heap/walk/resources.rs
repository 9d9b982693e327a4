//! Resources: streams, their contexts, and whatever modules register.
//!
//! A resource holds what its module allocated for it. The table of resources lists them and holds none: a resource ends with
//! its last reference, as an object does.

use std::collections::BTreeMap;

use borehole_heap::{HeapSink, LocationType, NodeId, NodeType, Strength};

use super::{Extent, HeapReader, HeapWalker, NodeLink, PendingScan, VisitKind};
use crate::layout::fixed;
use crate::remote::moved;

/// `zend_resource.handle`, a small number.
const RESOURCE_HANDLE: usize = 8;
/// `php_stream.wrapperdata`, a `zval`, and `res`, the stream's own `zend_resource *`; its context follows.
///
/// Source: `main/php_streams.h` of PHP 7.0 to 8.5. The fields between and behind them moved, these did not.
const STREAM_WRAPPER_DATA: usize = 80;
const STREAM_RESOURCE: usize = 120;
/// The maximum size of `php_stream`, which has 208 bytes or a few more.
const STREAM_BYTES: u64 = 256;

/// The maximum plausible number of bytes that a stream reads at once.
const MOST_CHUNK: u64 = 1 << 31;

/// The resources met, by address.
pub(super) type ResourceReferences = BTreeMap<u64, CountedResource>;

/// A resource, with the references that the walk has met.
#[derive(Clone, Copy, Debug)]
pub(super) struct CountedResource {
    pub(super) node: NodeId,
    /// `zend_resource.handle`: its number.
    pub(super) handle: u32,
    /// The address of its data.
    data: u64,
    /// The number of references that PHP counts.
    pub(super) counted: u32,
    /// The number of references met that keep it.
    pub(super) met: u32,
}

impl<S: HeapSink> HeapWalker<'_, S> {
    pub(super) fn resource(&mut self, link: NodeLink, address: u64) {
        let met = u32::from(link.strength != Strength::Weak);
        if let Some(known) = self.resources.get_mut(&address) {
            known.met = known.met.saturating_add(met);
        }
        let Some((node, spot)) = self.graph.enter(NodeType::RESOURCE, link, address) else { return };
        let Some(header) = self.counted(node, &spot, fixed::KIND_RESOURCE) else { return };
        let size = self.heap.layout.resource_size as u64;
        let extent = Extent::new(LocationType::RESOURCE, size);
        self.graph.locate(node, &spot, Extent { counted: Some(header), ..extent });
        let pointer = (self.heap.layout.resource_type + 4).next_multiple_of(8);
        let data = self.heap.view.pointer(address, pointer);
        let handle = self.heap.view.number(address, RESOURCE_HANDLE);
        self.resources.insert(address, CountedResource { node, handle, data, counted: header.0, met });
        if self.heap.is_stream_of(data, address) {
            return self.stream(node, data);
        }
        let name = self.graph.name(&format!("internal+{pointer}"));
        self.unknown_pointer(NodeLink::structural(node, name), data);
    }

    /// Visits a `php_stream`: its context, which streams share, its wrapper's data, and the memory that it alone refers to, such
    /// as its buffer, its filters and the data of its kind.
    fn stream(&mut self, resource: NodeId, address: u64) {
        let Some(room) = self.heap.room(address) else { return };
        let bytes = room.min(STREAM_BYTES);
        let link = NodeLink::structural(resource, self.graph.name("stream"));
        let extent = Extent::new(LocationType::INTERNAL_DATA, bytes);
        let Some(node) = self.block_by(link, NodeType::INTERNAL_DATA, address, extent) else { return };
        self.holds(node, "wrapper_data", moved(address, STREAM_WRAPPER_DATA));
        // Its own resource holds it, and not the other way around.
        let own = moved(address, STREAM_RESOURCE);
        let heap = self.heap;
        let mut places = (own + 8..address.saturating_add(bytes)).step_by(8);
        let word = |place: u64| heap.view.u64(place).unwrap_or_default();
        if let Some(place) = places.clone().find(|&place| heap.is_buffer(place)) {
            self.data(node, "buffer", word(place), heap.room(word(place)).unwrap_or_default());
        }
        let context = places.find(|&place| heap.is_resource(word(place)));
        if let Some(place) = context {
            self.refers(node, "context", VisitKind::Resource, word(place));
        }
        let mut start = address;
        for known in [Some(own), context].into_iter().flatten() {
            self.pending.scans.push(PendingScan { node, start, bytes: known - start });
            start = known + 8;
        }
        self.pending.scans.push(PendingScan { node, start, bytes: address.saturating_add(bytes) - start });
    }

    /// Whether the resource at `address` has more references than were met, so that its address in the memory that `scan` covers
    /// is one of them. From now on it counts as met. The data of a resource itself only refers back to it.
    pub(crate) fn explains(&mut self, address: u64, scan: &PendingScan) -> bool {
        let Some(resource) = self.resources.get_mut(&address) else { return false };
        let is_own = resource.data.checked_sub(scan.start).is_some_and(|offset| offset < scan.bytes);
        let is_open = !is_own && resource.met < resource.counted;
        resource.met += u32::from(is_open);
        is_open
    }
}

impl HeapReader<'_> {
    /// Whether the data of the resource at `resource` is a stream: a stream refers back to its resource.
    fn is_stream_of(&self, data: u64, resource: u64) -> bool {
        data != 0
            && self.room(data).is_some_and(|room| room > STREAM_RESOURCE as u64 + 8)
            && self.view.u64(moved(data, STREAM_RESOURCE)) == Some(resource)
    }

    /// Whether the fields of a stream's buffer are at `place`: its address, its length, where it is read and written, and the size
    /// of what is read at once.
    fn is_buffer(&self, place: u64) -> bool {
        let word = |number: usize| self.view.u64(moved(place, number * 8)).unwrap_or_default();
        let [length, read, written, chunk] = [1, 2, 3, 4].map(word);
        let has_room = || self.room(word(0)).is_some_and(|room| length <= room);
        length > 0 && read <= written && written <= length && (1..=MOST_CHUNK).contains(&chunk) && has_room()
    }

    /// Whether a `zend_resource` begins at `address`.
    fn is_resource(&self, address: u64) -> bool {
        let size = self.layout.resource_size as u64;
        let is_block = match self.blocks.allocator() {
            Some(_) => self.blocks.at(address).is_some_and(|block| block.bytes == size),
            None => address != 0,
        };
        is_block && self.is_counted_at(address, fixed::KIND_RESOURCE)
    }
}
