//! The offsets of fields in the structures of PHP's internal classes, counted from the start of an object's memory.
//!
//! Source: `zend_generators.h` and `zend_fibers.h` as in [`crate::layout`]; `zend_closures.c`, `spl_dllist.c`, `spl_heap.c` as
//! found in a process of each release, those of 7.1, 7.3 and 8.0 as computed from the sizes of their parts.

use crate::layout::layouts;
use crate::release::PhpRelease;

layouts! {
    /// The layout of one release: byte offsets and sizes. 0: not in this release, or unknown.
    InternalsLayout:
    // release                                7.0   7.1   7.2   7.3   7.4   8.0   8.1   8.2   8.3   8.4   8.5   8.6

    /// `zend_closure.this_ptr`, a `zval`, in 8.6 the object.
    closure_this: usize =                   [ 264,  280,  280,  272,  280,  288,  296,  304,  296,  312,  312,  312];
    /// `zend_closure.called_scope`, `zend_class_entry *`.
    closure_scope: usize =                  [ 280,  296,  296,  288,  296,  304,  312,  320,  312,  328,  328,  320];

    /// `zend_fiber.context.status`, `u32`.
    fiber_status: usize =                   [   0,    0,    0,    0,    0,    0,   96,  104,  104,  104,  104,  104];
    /// `zend_fiber.caller`, `zend_fiber_context *`: the context that resumed it; null unless it runs, or has resumed a running
    /// one.
    fiber_caller: usize =                   [   0,    0,    0,    0,    0,    0,  152,  168,  168,  168,  168,  168];
    /// `zend_fiber.fci.function_name`, a `zval`: the function that it calls.
    fiber_function: usize =                 [   0,    0,    0,    0,    0,    0,  176,  192,  192,  192,  192,  192];
    /// `zend_fiber.execute_data`, `zend_execute_data *`: the frame where it was suspended; `stack_bottom`, its outermost
    /// frame, follows.
    fiber_frame: usize =                    [   0,    0,    0,    0,    0,    0,  264,  280,  288,  288,  288,  288];
    /// `zend_fiber.result`, a `zval`.
    fiber_result: usize =                   [   0,    0,    0,    0,    0,    0,  280,  304,  312,  312,  312,  312];

    /// `spl_ptr_llist_element.data`, a `zval`, after `prev` and `next`.
    list_value: usize =                     [  24,   24,   24,   24,   24,   16,   16,   16,   16,   16,   16,   16];
    /// The size of an element of `SplPriorityQueue`: its data and, if it has one, its priority; a `zval` each.
    queue_element: usize =                  [  16,   16,   16,   32,   32,   32,   32,   32,   32,   32,   32,   32];
    /// The offset of `inf`, a `zval`, in an element of `SplObjectStorage`, after the object, which is a `zval` before 8.1.
    storage_value: usize =                  [  16,   16,   16,   16,   16,   16,    8,    8,    8,    8,    8,    8];
}
