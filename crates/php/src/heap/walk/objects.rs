//! Objects: their properties, and the further data of internal classes.

use borehole_heap::{AttributeValue, HeapSink, LocationType, NodeId, NodeType, Strength};
use hashbrown::HashMap;

use super::internals;
use super::seen::BlockSpot;
use super::task::PropertyRow;
use super::values::Zval;
use super::{Damage, Extent, HeapReader, HeapWalker, NodeLink, VisitKind, WalkTask};
use crate::layout::fixed;
use crate::remote::{moved, u32_at, u64_at};

/// `zend_object.ce`, `handlers`, `properties`, `properties_table`.
const CLASS: usize = 16;
const HANDLERS: usize = 24;
const DYNAMIC: usize = 32;
const PROPERTIES: usize = 40;

/// The maximum number of bytes before an object within its structure.
const MOST_BEFORE: i32 = 1 << 16;

/// An object that has a node.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ObjectView {
    pub(crate) node: NodeId,
    /// The start of the memory that it is part of.
    pub(crate) start: u64,
    /// The size of that memory, without the rest of the block.
    pub(crate) bytes: u64,
    /// Its `zend_class_entry`.
    pub(crate) class: u64,
    /// The number of its class.
    number: u32,
}

/// The handlers that objects of a kind share, by address: the number of bytes before an object within its memory, and the node.
#[derive(Clone, Debug, Default)]
pub(super) struct Handlers {
    known: HashMap<u64, (u64, NodeId)>,
    last: Option<(u64, u64, NodeId)>,
}

impl<S: HeapSink> HeapWalker<'_, S> {
    pub(super) fn object(&mut self, link: NodeLink, address: u64) {
        let spot = self.heap.spot(address);
        if self.graph.again(&spot, link) {
            return;
        }
        if self.heap.is_unlisted(address) {
            return internals::iterator(link, address, self);
        }
        let node = self.graph.node_at(NodeType::OBJECT, link, &spot);
        let Some(header) = self.heap.view.array::<PROPERTIES>(address) else {
            return self.missing(node, address);
        };
        let word = |offset| u64_at(&header, offset).unwrap_or_default();
        let class = word(CLASS);
        let number = self.class_number(class);
        let before = self.handlers(node, word(HANDLERS));
        let start = BlockSpot { address: address.wrapping_sub(before), block: spot.block };
        let counted = u32_at(&header, 0).zip(u32_at(&header, 4));
        let bytes = self.object_location(node, &start, before, number, counted);
        let mark = self.pending.tasks.len();
        self.object_properties(node, address, number);
        self.later(NodeLink::strong(node, self.words.dynamic_properties), VisitKind::Array, word(DYNAMIC));
        let view = ObjectView { node, start: start.address, bytes, class, number };
        if !self.classes.get(number).internal.is_empty() {
            internals::visit(&view, self);
        }
        self.in_order(mark);
    }

    /// Adds the location of an object that begins `before` bytes before its `zend_object`, and returns its size.
    fn object_location(
        &mut self,
        node: NodeId,
        start: &BlockSpot,
        before: u64,
        number: u32,
        counted: Option<(u32, u32)>,
    ) -> u64 {
        let class = self.classes.get(number);
        let (name, is_class) = (class.name, class.is_class);
        let room = start.block.map(|block| block.end().saturating_sub(start.address));
        let mut size = class.shape.bytes(before, room.unwrap_or_default());
        let is_torn = room.is_some_and(|room| size > room)
            || start.block.is_some_and(|block| block.address != start.address);
        size = room.map_or(size, |room| size.min(room));
        let extent = Extent { class: Some(name), counted, ..Extent::new(LocationType::OBJECT, size) };
        self.graph.locate(node, start, extent);
        let flags = counted.map_or(0, |counted| counted.1);
        if is_torn || !is_class || flags & self.heap.layout.header_kind != u32::from(fixed::KIND_OBJECT) {
            self.damage(node, Damage::Torn);
        }
        size
    }

    /// Adds the edge to an object's handlers, and returns the number of bytes before the object within its memory.
    fn handlers(&mut self, object: NodeId, address: u64) -> u64 {
        let link = NodeLink::structural(object, self.words.object_handlers);
        if let Some((last, before, node)) = self.handlers.last
            && last == address
        {
            self.graph.edge(link, node, false);
            return before;
        }
        let (before, node) = match self.handlers.known.get(&address) {
            Some(&(before, node)) => {
                self.graph.edge(link, node, false);
                (before, node)
            }
            None => self.new_handlers(link, address),
        };
        self.handlers.last = Some((address, before, node));
        before
    }

    fn new_handlers(&mut self, link: NodeLink, address: u64) -> (u64, NodeId) {
        let node = self.graph.node(NodeType::OBJECT_HANDLERS, link);
        let spot = self.heap.spot(address);
        let size = self.heap.layout.handlers_size as u64;
        self.graph.locate(node, &spot, Extent::new(LocationType::OBJECT_HANDLERS, size));
        let before = match self.heap.view.u32(address).map(u32::cast_signed) {
            Some(offset @ 0..MOST_BEFORE) => u64::from(offset.unsigned_abs()),
            Some(_) => {
                self.damage(node, Damage::Torn);
                0
            }
            None => {
                self.missing(node, address);
                0
            }
        };
        self.handlers.known.insert(address, (before, node));
        (before, node)
    }

    fn object_properties(&mut self, object: NodeId, address: u64, class: u32) {
        let count = self.classes.get(class).property_count;
        if count == 0 {
            return;
        }
        let link = NodeLink::strong(object, self.words.object_properties);
        let node = self.graph.node(NodeType::OBJECT_PROPERTIES, link);
        let values = moved(address, PROPERTIES);
        let present = self.heap.present(values, count);
        self.graph.limits.meet_bytes(count as usize * 16);
        self.count_attribute(node, present);
        let row = PropertyRow { node, class, values, at: 0, count, is_static: false, is_default: false };
        self.pending.tasks.push(WalkTask::Properties(row));
    }

    pub(super) fn properties(&mut self, mut row: PropertyRow) {
        while row.at < row.count {
            let address = row.values.wrapping_add(u64::from(row.at) * fixed::VALUE_SIZE);
            let Some(value) = Zval::at(self.heap.view, address) else {
                return self.missing(row.node, address);
            };
            let place = row.at;
            row.at += 1;
            let Some(value) = self.heap.direct(value) else { continue };
            if row.is_default && value.kind < fixed::KIND_STRING {
                continue;
            }
            let name = self.property_name(row.class, row.is_static, place);
            let link = NodeLink::strong(row.node, name);
            if value.leads_on() {
                self.pending.tasks.push(WalkTask::Properties(row));
                return self.value(link, value);
            }
            self.value(link, value);
        }
    }
}

/// The interface for [`internals`].
impl<S: HeapSink> HeapWalker<'_, S> {
    /// The name of the internal class that `object` has, or that its class extends.
    pub(crate) fn internal_class(&self, object: &ObjectView) -> &[u8] {
        &self.classes.get(object.number).internal
    }

    /// Schedules a visit of `address`, which `parent` holds.
    pub(crate) fn refers(&mut self, parent: NodeId, name: &str, kind: VisitKind, address: u64) {
        let link = NodeLink::strong(parent, self.graph.name(name));
        self.later(link, kind, address);
    }

    /// Schedules a visit of `address`, which `parent` refers to but does not hold.
    pub(crate) fn refers_weakly(&mut self, parent: NodeId, name: &str, kind: VisitKind, address: u64) {
        let name = self.graph.name(name);
        self.weakly(NodeLink::weak(parent, name), kind, address);
    }

    /// Schedules a visit of `address`, which the parent of `link` refers to but does not hold.
    pub(super) fn weakly(&mut self, link: NodeLink, kind: VisitKind, address: u64) {
        if address != 0 {
            self.pending.weak.push((NodeLink { strength: Strength::Weak, ..link }, kind, address));
        }
    }

    /// Visits the targets of weak references, and everything that they hold.
    pub(super) fn weakly_referred(&mut self) {
        while !self.pending.weak.is_empty() {
            for (link, kind, address) in std::mem::take(&mut self.pending.weak) {
                self.later(link, kind, address);
                self.run();
            }
            self.finish_scans();
        }
    }

    /// Schedules a visit of the value at `address`, which is part of `parent`.
    pub(crate) fn holds(&mut self, parent: NodeId, name: &str, address: u64) {
        self.refers(parent, name, VisitKind::Value, address);
    }

    /// Adds a node for a part of `parent` without its own memory.
    pub(crate) fn part(&mut self, parent: NodeId, name: &str, node_type: NodeType) -> NodeId {
        let name = self.graph.name(name);
        self.graph.node(node_type, NodeLink::strong(parent, name))
    }

    /// Adds a node for the memory at `address` that `parent` holds; `None` if the address is null or has a node already.
    pub(crate) fn block(
        &mut self,
        parent: NodeId,
        name: &str,
        node_type: NodeType,
        address: u64,
        extent: Extent,
    ) -> Option<NodeId> {
        let link = NodeLink::strong(parent, self.graph.name(name));
        self.block_by(link, node_type, address, extent)
    }

    /// Like [`Self::block`], for the data of an internal class or a module.
    pub(crate) fn data(&mut self, parent: NodeId, name: &str, address: u64, bytes: u64) -> Option<NodeId> {
        let extent = Extent::new(LocationType::INTERNAL_DATA, bytes);
        self.block(parent, name, NodeType::INTERNAL_DATA, address, extent)
    }

    pub(crate) fn block_by(
        &mut self,
        link: NodeLink,
        node_type: NodeType,
        address: u64,
        extent: Extent,
    ) -> Option<NodeId> {
        if address == 0 {
            return None;
        }
        self.graph.once(link, node_type, address, extent)
    }

    pub(crate) fn fact(&mut self, node: NodeId, key: &str, value: AttributeValue<'_>) {
        let key = self.graph.name(key);
        self.graph.sink.attribute(node, key, value);
    }
}

impl HeapReader<'_> {
    /// The number of the `count` values at `address` that are present.
    pub(super) fn present(&self, address: u64, count: u32) -> u64 {
        let bytes = self.view.bytes(address, u64::from(count) * fixed::VALUE_SIZE);
        bytes.chunks_exact(16).filter(|value| value[8] != 0).count() as u64
    }
}
