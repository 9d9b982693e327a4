//! Objects: their properties, and the further data of internal classes.

use borehole_heap::{HeapSink, LocationType, NodeId, NodeType, Strength, Value};
use hashbrown::HashMap;

use super::seen::Spot;
use super::task::Properties;
use super::values::{VALUE_SIZE, Zval};
use super::{Damage, Kind, Link, Shape, Task, Walker};
use crate::heap::internals;
use crate::layout::fixed;
use crate::remote::{moved, u32_at, u64_at};

/// `zend_object.ce`, `handlers`, `properties`, `properties_table`.
const CLASS: usize = 16;
const HANDLERS: usize = 24;
const DYNAMIC: usize = 32;
const PROPERTIES: usize = 40;

/// The type of an object in its header.
const OBJECT: u32 = 8;

/// The maximum number of bytes before an object within its structure.
const MOST_BEFORE: i32 = 1 << 16;

/// An object that has a node.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ObjectView {
    pub(crate) node: NodeId,
    /// The start of the memory that it is part of.
    pub(crate) start: u64,
    /// The size of that memory: of the block, or of a `zend_object`.
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

impl<S: HeapSink> Walker<'_, S> {
    /// Visits the object at `address`.
    pub(super) fn object(&mut self, link: Link, address: u64) {
        let spot = self.spot(address);
        if self.again(&spot, link) {
            return;
        }
        if self.is_unlisted(address) {
            return internals::iterator(link, address, self);
        }
        let node = self.node_at(NodeType::OBJECT, link, &spot);
        let Some(header) = self.view.array::<PROPERTIES>(address) else {
            return self.damage(node, Damage::Missing);
        };
        let word = |offset| u64_at(&header, offset).unwrap_or_default();
        let class = word(CLASS);
        let number = self.class_number(class);
        let before = self.handlers(node, word(HANDLERS));
        let start = Spot { address: address.wrapping_sub(before), block: spot.block };
        let counted = u32_at(&header, 0).zip(u32_at(&header, 4));
        let bytes = self.object_location(node, &start, before, number, counted);
        let mark = self.work.len();
        self.object_properties(node, address, number);
        self.later(Link::strong(node, self.words.dynamic_properties), Kind::Array, word(DYNAMIC));
        let view = ObjectView { node, start: start.address, bytes, class, number };
        if !self.classes.get(number).internal.is_empty() {
            internals::visit(&view, self);
        }
        self.in_order(mark);
    }

    /// Adds the location of an object that begins `before` bytes before its `zend_object`.
    fn object_location(
        &mut self,
        node: NodeId,
        start: &Spot,
        before: u64,
        number: u32,
        counted: Option<(u32, u32)>,
    ) -> u64 {
        let class = self.classes.get(number);
        let mut size = before + PROPERTIES as u64 + u64::from(class.property_count) * VALUE_SIZE;
        let (name, is_class) = (class.name, class.is_class);
        let room = start.block.map(|block| block.end().saturating_sub(start.address));
        let is_torn = room.is_some_and(|room| size > room)
            || start.block.is_some_and(|block| block.address != start.address);
        size = class.internal_size.map_or(size, |own| own.max(size));
        size = room.map_or(size, |room| size.min(room));
        let shape = Shape { class: Some(name), counted, ..Shape::new(LocationType::OBJECT, size) };
        self.locate(node, start, shape);
        let flags = counted.map_or(0, |counted| counted.1);
        if is_torn || !is_class || flags & self.layout.header_kind != OBJECT {
            self.damage(node, Damage::Torn);
        }
        room.unwrap_or(size)
    }

    /// Adds the edge to an object's handlers, and returns the number of bytes before the object within its memory.
    fn handlers(&mut self, object: NodeId, address: u64) -> u64 {
        let link = Link::structural(object, self.words.object_handlers);
        if let Some((last, before, node)) = self.handlers.last
            && last == address
        {
            self.edge(link, node, false);
            return before;
        }
        let (before, node) = match self.handlers.known.get(&address) {
            Some(&(before, node)) => {
                self.edge(link, node, false);
                (before, node)
            }
            None => self.new_handlers(link, address),
        };
        self.handlers.last = Some((address, before, node));
        before
    }

    fn new_handlers(&mut self, link: Link, address: u64) -> (u64, NodeId) {
        let node = self.node(NodeType::OBJECT_HANDLERS, link);
        let spot = self.spot(address);
        let size = self.layout.handlers_size as u64;
        self.locate(node, &spot, Shape::new(LocationType::OBJECT_HANDLERS, size));
        let offset = self.view.u32(address).map(u32::cast_signed);
        let before = match offset {
            Some(offset @ 0..MOST_BEFORE) => u64::from(offset.unsigned_abs()),
            Some(_) => {
                self.damage(node, Damage::Torn);
                0
            }
            None => {
                self.damage(node, Damage::Missing);
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
        let link = Link::strong(object, self.words.object_properties);
        let node = self.node(NodeType::OBJECT_PROPERTIES, link);
        let values = moved(address, PROPERTIES);
        let present = self.present(values, count);
        self.look_through(count as usize * 16);
        self.count_attribute(node, present);
        let row = Properties { node, class, values, at: 0, count, is_static: false, is_default: false };
        self.work.push(Task::Properties(row));
    }

    /// The number of the `count` values at `address` that are present.
    pub(super) fn present(&self, address: u64, count: u32) -> u64 {
        let bytes = self.view.bytes(address, u64::from(count) * VALUE_SIZE);
        bytes.chunks_exact(16).filter(|value| value[8] != 0).count() as u64
    }

    /// Continues with properties, until one leads to further work.
    pub(super) fn properties(&mut self, mut row: Properties) {
        while row.at < row.count {
            let address = row.values.wrapping_add(u64::from(row.at) * VALUE_SIZE);
            let Some(value) = self.view.array::<16>(address).and_then(|bytes| Zval::parse(&bytes)) else {
                return self.damage(row.node, Damage::Missing);
            };
            let place = row.at;
            row.at += 1;
            let Some(value) = self.direct(value) else { continue };
            if row.is_default && value.kind < fixed::KIND_STRING {
                continue;
            }
            let name = self.property_name(row.class, row.is_static, place);
            let link = Link::strong(row.node, name);
            if self.leads_on(value) {
                self.work.push(Task::Properties(row));
                return self.value(link, value);
            }
            self.value(link, value);
        }
    }
}

/// The interface for [`internals`].
impl<S: HeapSink> Walker<'_, S> {
    /// The name of the internal class that `object` has, or that its class extends.
    pub(crate) fn internal_class(&self, object: &ObjectView) -> &[u8] {
        &self.classes.get(object.number).internal
    }

    /// Schedules a visit of `address`, which `parent` refers to.
    pub(crate) fn refers(
        &mut self,
        parent: NodeId,
        name: &str,
        kind: Kind,
        address: u64,
        strength: Strength,
    ) {
        let name = self.sink.string(name.as_bytes());
        self.later(Link { parent: Some(parent), name, strength }, kind, address);
    }

    /// Schedules a visit of `address`, which `parent` refers to but does not hold.
    pub(crate) fn refers_weakly(&mut self, parent: NodeId, name: &str, kind: Kind, address: u64) {
        let name = self.sink.string(name.as_bytes());
        if address != 0 {
            self.weak.push((Link::weak(parent, name), kind, address));
        }
    }

    /// Visits the targets of weak references, and everything that they hold.
    pub(super) fn weakly_referred(&mut self) {
        while !self.weak.is_empty() {
            for (link, kind, address) in std::mem::take(&mut self.weak) {
                self.later(link, kind, address);
                self.run();
            }
            self.finish_scans();
        }
    }

    /// Schedules a visit of the value at `address`, which is part of `parent`.
    pub(crate) fn holds(&mut self, parent: NodeId, name: &str, address: u64) {
        self.refers(parent, name, Kind::Value, address, Strength::Strong);
    }

    /// Adds a node for a part of `parent` without its own memory.
    pub(crate) fn part(&mut self, parent: NodeId, name: &str, node_type: NodeType) -> NodeId {
        let name = self.sink.string(name.as_bytes());
        self.node(node_type, Link::strong(parent, name))
    }

    /// Adds a node for the memory at `address` that `parent` refers to; `None` if the address is null or has a node already.
    pub(crate) fn block(
        &mut self,
        parent: NodeId,
        name: &str,
        strength: Strength,
        node_type: NodeType,
        address: u64,
        shape: Shape,
    ) -> Option<NodeId> {
        let name = self.sink.string(name.as_bytes());
        self.block_by(Link { parent: Some(parent), name, strength }, node_type, address, shape)
    }

    /// Like [`Self::block`], with a link.
    pub(crate) fn block_by(
        &mut self,
        link: Link,
        node_type: NodeType,
        address: u64,
        shape: Shape,
    ) -> Option<NodeId> {
        if address == 0 {
            return None;
        }
        let spot = self.spot(address);
        if self.again(&spot, link) {
            return None;
        }
        let node = self.node_at(node_type, link, &spot);
        self.locate(node, &spot, shape);
        Some(node)
    }

    /// Adds an attribute to a node.
    pub(crate) fn fact(&mut self, node: NodeId, key: &str, value: Value<'_>) {
        let key = self.sink.string(key.as_bytes());
        self.sink.attribute(node, key, value);
    }
}
