//! Suspended code: generators and fibers, with their frames.

use borehole_heap::{HeapSink, NodeType, Strength};

use super::InternalsLayout;
use crate::heap::walk::{Kind, ObjectView, Walker};
use crate::remote::moved;

/// Visits a generator: its frame, and the values passed in and out.
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

/// `zend_fiber.context.status`: `ZEND_FIBER_STATUS_RUNNING` and `ZEND_FIBER_STATUS_SUSPENDED`.
const RUNNING: u32 = 1;
const SUSPENDED: u32 = 2;

/// Visits a fiber: its function, its frames, its stack, its result.
pub(super) fn fiber<S: HeapSink>(object: &ObjectView, layout: &InternalsLayout, walker: &mut Walker<'_, S>) {
    let node = walker.part(object.node, "fiber", NodeType::FIBER);
    walker.holds(node, "function", moved(object.start, layout.fiber_function));
    let status = walker.view.number(object.start, layout.fiber_status);
    let [caller, frame, bottom] = [layout.fiber_caller, layout.fiber_frame, layout.fiber_bottom]
        .map(|offset| walker.view.pointer(object.start, offset));
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
