//! Code that waits: generators and fibers, with their frames.

use borehole_heap::{HeapSink, LocationType, NodeType, Region, Strength};

use super::InternalsLayout;
use crate::heap::blocks::{Block, Blocks};
use crate::heap::walk::{Kind, ObjectView, Shape, View, Walker};
use crate::remote::moved;

/// A generator: its frame, and what goes in and out of it.
pub(super) fn generator<S: HeapSink>(
    object: &ObjectView,
    layout: &InternalsLayout,
    walker: &mut Walker<'_, S>,
) {
    let node = walker.part(object.node, "generator", NodeType::GENERATOR);
    let [frame, delegate] = [walker.php.layout.generator_frame, walker.php.layout.generator_delegate]
        .map(|offset| walker.view.pointer(object.start, offset));
    if frame != 0 {
        let frames = walker.part(node, "call_frames", NodeType::CALL_FRAMES);
        walker.refers(frames, "0", Kind::Frame, frame, Strength::Strong);
    }
    for (name, number) in [("value", 0), ("key", 1), ("retval", 2)] {
        walker.holds(node, name, moved(object.start, layout.generator_value + number * 16));
    }
    walker.holds(node, "values", moved(object.start, layout.generator_values));
    walker.refers(node, "yield_from", Kind::Object, delegate, Strength::Strong);
}

/// `zend_vm_stack`: `top`, `end`, and its size with the padding to whole values.
const PAGE_TOP: usize = 0;
const PAGE_END: usize = 8;
const PAGE_HEADER: u64 = 32;

/// Says which blocks are pages of the stacks of fibers: they begin with the places up to which they are used, and end.
pub(crate) fn claim(view: View<'_>, blocks: &mut Blocks) {
    let is_page = |block: &Block| {
        let [top, end] =
            [PAGE_TOP, PAGE_END].map(|offset| view.u64(moved(block.address, offset)).unwrap_or_default());
        end == block.end() && (block.address + PAGE_HEADER..=end).contains(&top)
    };
    let pages: Vec<Block> = blocks.large().filter(is_page).collect();
    for page in pages {
        blocks.claim(page.address, Region::VM_STACK);
    }
}

/// A fiber: what it calls, its frames, its result.
pub(super) fn fiber<S: HeapSink>(object: &ObjectView, layout: &InternalsLayout, walker: &mut Walker<'_, S>) {
    let node = walker.part(object.node, "fiber", NodeType::FIBER);
    walker.holds(node, "function", moved(object.start, layout.fiber_function));
    walker.chain(node, walker.view.pointer(object.start, layout.fiber_frame));
    walker.holds(node, "result", moved(object.start, layout.fiber_result));
    let page = walker.view.pointer(object.start, layout.fiber_stack);
    if walker.room(page).is_some_and(|room| room > PAGE_HEADER) {
        let shape = Shape::new(LocationType::VM_STACK_HEADER, PAGE_HEADER);
        walker.block(node, "vm_stack", Strength::Strong, NodeType::VM_STACK_ARENA, page, shape);
    }
}
