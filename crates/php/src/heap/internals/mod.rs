//! The data that objects of PHP's internal classes hold beyond their properties.
//!
//! Known classes have functions of their own. For other classes, and for unknown parts of known ones, [`scan`] takes every word
//! that is the address of a block that nothing else leads to.

mod connections;
mod containers;
mod layout;
pub(crate) mod scan;
mod suspended;

use borehole_heap::{HeapSink, LocationType, NodeType, Strength};

use crate::heap::walk::{Kind, Link, ObjectView, Shape, Walker};
use crate::release::Release;
use crate::remote::moved;

pub(crate) use self::containers::table;
pub(crate) use self::layout::InternalsLayout;

/// Visits the data that `object` holds beyond its properties.
pub(crate) fn visit<S: HeapSink>(object: &ObjectView, walker: &mut Walker<'_, S>) {
    let layout = InternalsLayout::of(walker.php.identity.release);
    match walker.internal_class(object) {
        b"Closure" => closure(object, &layout, walker),
        b"Generator" => suspended::generator(object, &layout, walker),
        b"Fiber" => suspended::fiber(object, &layout, walker),
        b"WeakReference" => weak_reference(object, walker),
        b"WeakMap" => containers::weak_map(object, walker),
        b"SplObjectStorage" | b"MultipleIterator" => containers::object_storage(object, &layout, walker),
        b"ArrayObject" | b"ArrayIterator" | b"RecursiveArrayIterator" => {
            containers::array_object(object, walker);
        }
        b"SplFixedArray" => containers::fixed_array(object, walker),
        b"SplDoublyLinkedList" | b"SplQueue" | b"SplStack" => {
            containers::linked_list(object, &layout, walker);
        }
        b"SplHeap" | b"SplMinHeap" | b"SplMaxHeap" => containers::heap(object, 16, walker),
        b"SplPriorityQueue" => containers::heap(object, layout.queue_element, walker),
        b"PDOStatement" => connections::statement(object, walker),
        class if class == b"PDO" || class.starts_with(b"Pdo\\") => connections::connection(object, walker),
        _ => {}
    }
    scan::later(object, walker);
}

/// The size of the structure for objects of an internal class; `None` if unknown.
pub(crate) fn size(class: &[u8], release: Release) -> Option<u64> {
    let layout = InternalsLayout::of(release);
    let size = match class {
        b"Closure" => layout.closure_size,
        b"Generator" => layout.generator_size,
        b"Fiber" => layout.fiber_size,
        _ => 0,
    };
    (size > 0).then_some(size)
}

/// `zend_closure.func`.
const CLOSURE_FUNCTION: usize = 56;

/// Visits a closure: its function with the bound variables, its `$this`, its class.
fn closure<S: HeapSink>(object: &ObjectView, layout: &InternalsLayout, walker: &mut Walker<'_, S>) {
    let node = walker.part(object.node, "closure", NodeType::CLOSURE);
    let at = |offset| moved(object.start, offset);
    walker.refers(node, "func", Kind::Function, at(CLOSURE_FUNCTION), Strength::Strong);
    // If there is no room for a value before the class, it is a pointer to the object.
    if layout.closure_scope - layout.closure_this == 8 {
        let this = walker.view.pointer(object.start, layout.closure_this);
        walker.refers(node, "this_ptr", Kind::Object, this, Strength::Strong);
    } else {
        walker.holds(node, "this_ptr", at(layout.closure_this));
    }
    let scope = walker.view.pointer(object.start, layout.closure_scope);
    walker.refers(node, "called_scope", Kind::Class, scope, Strength::Structural);
}

impl<S: HeapSink> Walker<'_, S> {
    /// The closure that contains the function at `address`: whoever executes the function holds the closure.
    pub(crate) fn closure_of(&self, address: u64) -> Option<u64> {
        let closure = address.checked_sub(CLOSURE_FUNCTION as u64)?;
        (self.room(closure).is_some() && self.is_listed_object(closure)).then_some(closure)
    }
}

/// Adds the iterator of a loop over an object. It looks like an object, but is not in the table of objects, and its class is
/// not set.
pub(crate) fn iterator<S: HeapSink>(link: Link, address: u64, walker: &mut Walker<'_, S>) {
    let bytes = walker.room(address).unwrap_or(ITERATOR_SIZE);
    let shape = Shape::new(LocationType::INTERNAL_DATA, bytes.min(ITERATOR_SIZE));
    let Some(node) = walker.block_by(link, NodeType::INTERNAL_DATA, address, shape) else { return };
    walker.holds(node, "data", moved(address, ITERATOR_DATA));
    walker.scans.push(scan::Scan { node, start: address, bytes });
}

/// `zend_object_iterator.data`, after its `zend_object`.
const ITERATOR_DATA: usize = 56;
/// `zend_object_iterator`, the start of many other iterators.
const ITERATOR_SIZE: u64 = 88;

/// Visits a weak reference, if its object still exists.
fn weak_reference<S: HeapSink>(object: &ObjectView, walker: &mut Walker<'_, S>) {
    let node = walker.part(object.node, "weak_reference", NodeType::WEAK_REFERENCE);
    let referent = walker.view.u64(object.start).unwrap_or_default();
    walker.refers_weakly(node, "referent", Kind::Object, referent);
}
