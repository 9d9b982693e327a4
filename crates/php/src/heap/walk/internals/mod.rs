//! The data that objects of PHP's internal classes hold beyond their properties.
//!
//! Known classes have functions of their own. For other classes, and for unknown parts of known ones, [`scan`] takes every word
//! that is the address of a block that nothing else leads to.

mod containers;
mod layout;
pub(crate) mod scan;

use borehole_heap::{HeapSink, LocationType, NodeType};

use crate::heap::allocator;
use crate::heap::walk::{Extent, HeapReader, HeapWalker, NodeLink, ObjectView, PendingScan, VisitKind};
use crate::layout::fixed;
use crate::remote::moved;

pub(crate) use self::containers::table;
pub(crate) use self::layout::InternalsLayout;

pub(crate) fn visit<S: HeapSink>(object: &ObjectView, walker: &mut HeapWalker<'_, S>) {
    let layout = InternalsLayout::of(walker.heap.php.identity.release);
    match walker.internal_class(object) {
        b"Closure" => closure(object, &layout, walker),
        b"Generator" => generator(object, walker),
        b"Fiber" => fiber(object, &layout, walker),
        b"WeakReference" => weak_reference(object, walker),
        b"WeakMap" => containers::weak_map(object, walker),
        b"SplObjectStorage" | b"MultipleIterator" => containers::object_storage(object, &layout, walker),
        b"ArrayObject" | b"ArrayIterator" | b"RecursiveArrayIterator" => {
            // An array, or an object used as one.
            walker.holds(object.node, "storage", object.start);
        }
        b"SplFixedArray" => containers::fixed_array(object, walker),
        b"SplDoublyLinkedList" | b"SplQueue" | b"SplStack" => {
            containers::linked_list(object, &layout, walker);
        }
        b"SplHeap" | b"SplMinHeap" | b"SplMaxHeap" => containers::heap(object, 16, walker),
        b"SplPriorityQueue" => containers::heap(object, layout.queue_element, walker),
        b"PDOStatement" => statement(object, walker),
        class if class == b"PDO" || class.starts_with(b"Pdo\\") => connection(object, walker),
        _ => {}
    }
    scan::later(object, walker);
}

/// `zend_closure.func`.
const CLOSURE_FUNCTION: usize = 56;

/// Visits a closure: its function with the bound variables, its `$this`, its class.
fn closure<S: HeapSink>(object: &ObjectView, layout: &InternalsLayout, walker: &mut HeapWalker<'_, S>) {
    let node = walker.part(object.node, "closure", NodeType::CLOSURE);
    let at = |offset| moved(object.start, offset);
    walker.refers(node, "func", VisitKind::Function, at(CLOSURE_FUNCTION));
    // If there is no room for a value before the class, it is a pointer to the object.
    if layout.closure_scope - layout.closure_this == 8 {
        let this = walker.heap.view.pointer(object.start, layout.closure_this);
        walker.refers(node, "this_ptr", VisitKind::Object, this);
    } else {
        walker.holds(node, "this_ptr", at(layout.closure_this));
    }
    let scope = walker.heap.view.pointer(object.start, layout.closure_scope);
    let link = NodeLink::structural(node, walker.graph.name("called_scope"));
    walker.later(link, VisitKind::Class, scope);
}

impl HeapReader<'_> {
    /// The closure that contains the function at `address`: a call of the function holds the closure.
    pub(crate) fn closure_of(&self, address: u64) -> Option<u64> {
        let closure = address.checked_sub(CLOSURE_FUNCTION as u64)?;
        (self.room(closure).is_some() && self.is_listed_object(closure)).then_some(closure)
    }
}

/// Adds the iterator of a loop over an object. It looks like an object, but is not in the table of objects, and its class is
/// not set.
pub(crate) fn iterator<S: HeapSink>(link: NodeLink, address: u64, walker: &mut HeapWalker<'_, S>) {
    let block = walker.heap.blocks.at(address).map_or(0, |block| block.bytes);
    let bytes = allocator::least_request(block).max(ITERATOR_SIZE);
    let extent = Extent::new(LocationType::INTERNAL_DATA, bytes);
    let Some(node) = walker.block_by(link, NodeType::INTERNAL_DATA, address, extent) else { return };
    walker.holds(node, "data", moved(address, ITERATOR_DATA));
    walker.pending.scans.push(PendingScan { node, start: address, bytes });
}

/// `zend_object_iterator.data`, after its `zend_object`.
const ITERATOR_DATA: usize = 56;
/// `zend_object_iterator`, the start of many other iterators.
const ITERATOR_SIZE: u64 = 88;

fn weak_reference<S: HeapSink>(object: &ObjectView, walker: &mut HeapWalker<'_, S>) {
    let node = walker.part(object.node, "weak_reference", NodeType::WEAK_REFERENCE);
    let referent = walker.heap.view.u64(object.start).unwrap_or_default();
    walker.refers_weakly(node, "referent", VisitKind::Object, referent);
}

fn generator<S: HeapSink>(object: &ObjectView, walker: &mut HeapWalker<'_, S>) {
    let node = walker.part(object.node, "generator", NodeType::GENERATOR);
    let [frame, delegate] =
        [walker.heap.php.layout.generator_frame, walker.heap.php.layout.generator_delegate]
            .map(|offset| walker.heap.view.pointer(object.start, offset));
    if frame != 0 {
        let frames = walker.part(node, "call_frames", NodeType::CALL_FRAMES);
        walker.refers(frames, "0", VisitKind::Frame, frame);
    }
    for (name, number) in [("value", 0), ("key", 1), ("retval", 2)] {
        walker.holds(
            node,
            name,
            moved(object.start, walker.heap.php.layout.generator_frame + 16 + number * 16),
        );
    }
    walker.holds(node, "values", moved(object.start, walker.heap.php.layout.generator_delegate - 16));
    walker.refers(node, "yield_from", VisitKind::Object, delegate);
}

/// `zend_fiber.context.status`: `ZEND_FIBER_STATUS_RUNNING` and `ZEND_FIBER_STATUS_SUSPENDED`.
const RUNNING: u32 = 1;
const SUSPENDED: u32 = 2;

fn fiber<S: HeapSink>(object: &ObjectView, layout: &InternalsLayout, walker: &mut HeapWalker<'_, S>) {
    let node = walker.part(object.node, "fiber", NodeType::FIBER);
    walker.holds(node, "function", moved(object.start, layout.fiber_function));
    let status = walker.heap.view.number(object.start, layout.fiber_status);
    let [caller, frame, bottom] = [layout.fiber_caller, layout.fiber_frame, layout.fiber_frame + 8]
        .map(|offset| walker.heap.view.pointer(object.start, offset));
    // Like `Fiber::isSuspended()`. In any other state, the frame is that of a call that has returned: the calls of the running
    // fiber, and of those that resumed it, are those of the program.
    if status == SUSPENDED && caller == 0 {
        walker.chain(node, frame);
    }
    walker.holds(node, "result", moved(object.start, layout.fiber_result));
    // A fiber that has ended has no stack; its former place may contain anything.
    if status == RUNNING || status == SUSPENDED {
        walker.stack_of(node, bottom);
    }
}

/// `pdo_dbh_t.methods` and `driver_data`: what is looked at of a connection without a block.
const CONNECTION_START: u64 = 16;

/// Visits a `PDO`: `pdo_dbh_object_t` begins with the address of its connection.
///
/// The data of its driver is scanned like all unknown data.
///
/// Source: `ext/pdo/php_pdo_driver.h` of PHP 7.0 to 8.5.
fn connection<S: HeapSink>(object: &ObjectView, walker: &mut HeapWalker<'_, S>) {
    let start = walker.heap.view.u64(object.start).unwrap_or_default();
    let Some(room) = walker.heap.room(start) else { return };
    let bytes = walker.heap.blocks.at(start).map_or(room.min(CONNECTION_START), |block| block.bytes);
    if let Some(node) = walker.data(object.node, "connection", start, bytes) {
        walker.pending.scans.push(PendingScan { node, start, bytes });
    }
}

/// Visits a `PDOStatement`: its connection is in it as a value, at an offset that depends on the release; it is the first
/// object.
fn statement<S: HeapSink>(object: &ObjectView, walker: &mut HeapWalker<'_, S>) {
    let words = walker.heap.view.length(object.start, object.bytes) / 8;
    let places = (0..words).map(|word| object.start + word * 8);
    let is_object = |place: &u64| {
        let value = walker.heap.view.u64(*place).unwrap_or_default();
        walker.heap.view.array(moved(*place, 8)) == Some([fixed::KIND_OBJECT])
            && walker.heap.is_listed_object(value)
    };
    let handle = places.into_iter().find(is_object);
    if let Some(place) = handle {
        walker.holds(object.node, "database_object_handle", place);
    }
}
