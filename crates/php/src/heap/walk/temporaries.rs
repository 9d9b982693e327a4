//! Values that frames hold for the instructions of their functions: temporaries, and values pending until the end of a
//! `finally`.
//!
//! Source: `cleanup_live_vars` and `ZEND_DISPATCH_TRY_CATCH_FINALLY_HELPER` in `Zend/zend_vm_def.h` and `zend_execute.c`, of
//! PHP 7.1 to 8.5, which release these values too.

use std::borrow::Cow;

use borehole_heap::{HeapSink, NodeId, StringId};

use super::frames::CallFrame;
use super::{HeapReader, HeapWalker, NodeLink, VisitKind};
use crate::layout::fixed;
use crate::remote::{moved, u32_at};

/// `zend_live_range`: the place of a temporary with its kind in the lowest bits, and the range of instructions where it is
/// live.
const RANGE_SIZE: usize = 12;
const RANGE_KIND: u32 = 7;
/// `ZEND_LIVE_SILENCE` and `ZEND_LIVE_ROPE`, which are not values.
const RANGE_NO_VALUES: [u32; 2] = [2, 3];
/// `zend_try_catch_element`: `try_op`, `catch_op`, `finally_op`, `finally_end`.
const TRY_SIZE: usize = 16;
const TRY_FINALLY: usize = 8;
const TRY_END: usize = 12;
/// `ZEND_FAST_CALL` and `ZEND_FAST_RET`, which begin and end a `finally`; equal in every release.
const FAST_CALL: u8 = 162;
const FAST_RETURN: u8 = 163;
/// `zval.u2`: the instruction that began a `finally`, unless an exception began it.
const VALUE_EXTRA: usize = 12;
/// `IS_TMP_VAR` and `IS_VAR`.
const TEMPORARIES: u8 = 6;

impl<S: HeapSink> HeapWalker<'_, S> {
    pub(super) fn live_temporaries(&mut self, node: NodeId, frame: &CallFrame) {
        let Some(position) = frame.place.position else { return };
        let ranges = self.heap.view.pointer(frame.function, self.heap.layout.function_live_ranges);
        let count =
            self.heap.view.number(frame.function, self.heap.layout.function_live_ranges.saturating_sub(8));
        for range in self.heap.rows(ranges, count, RANGE_SIZE).chunks_exact(RANGE_SIZE) {
            let [variable, start, end] = [0, 4, 8].map(|offset| u32_at(range, offset).unwrap_or_default());
            let is_live = (u64::from(start)..u64::from(end)).contains(&position);
            if is_live && !RANGE_NO_VALUES.contains(&(variable & RANGE_KIND)) {
                self.temporary(node, frame, variable);
            }
        }
    }

    /// Visits what is pending until the end of the frame's `finally`: an exception, or a value to return.
    pub(super) fn pending_of_finally(&mut self, node: NodeId, frame: &CallFrame) {
        let Some(position) = frame.place.position else { return };
        let tries = self.heap.view.pointer(frame.function, self.heap.layout.function_tries);
        let count = self.heap.view.number(frame.function, self.heap.layout.function_tries - 12);
        for one in self.heap.rows(tries, count, TRY_SIZE).chunks_exact(TRY_SIZE) {
            let [start, end] = [TRY_FINALLY, TRY_END].map(|offset| u32_at(one, offset).unwrap_or_default());
            if (u64::from(start)..u64::from(end)).contains(&position) {
                self.pending(node, frame, end);
            }
        }
    }

    /// Visits what the `finally` that ends with the instruction number `end` keeps in its variable.
    fn pending(&mut self, node: NodeId, frame: &CallFrame, end: u32) {
        let Some((op, [FAST_RETURN, ..])) = self.heap.op(frame, end) else { return };
        let Some(place) = self.heap.temporary_at(frame, self.heap.view.number(op, fixed::OP_FIRST)) else {
            return;
        };
        let variable = frame.address_of(place);
        let exception = self.heap.view.u64(variable).unwrap_or_default();
        if exception != 0 && self.heap.is_listed_object(exception) {
            let name = self.temporary_name(frame, place);
            return self.later(NodeLink::strong(node, name), VisitKind::Object, exception);
        }
        let began = self.heap.view.number(variable, VALUE_EXTRA);
        if let Some((op, [FAST_CALL, _, kind])) = self.heap.op(frame, began)
            && kind & TEMPORARIES != 0
        {
            self.temporary(node, frame, self.heap.view.number(op, fixed::OP_SECOND));
        }
    }

    fn temporary_name(&mut self, frame: &CallFrame, place: u32) -> StringId {
        self.graph.name(&format!("$_T[{}]", place - frame.variables))
    }

    fn temporary(&mut self, node: NodeId, frame: &CallFrame, variable: u32) {
        let Some(place) = self.heap.temporary_at(frame, variable) else { return };
        self.place(node, frame, place, |walker| walker.temporary_name(frame, place));
    }
}

impl<'d> HeapReader<'d> {
    /// The address of the instruction with a number, its code, and the kinds of its operands.
    fn op(&self, frame: &CallFrame, number: u32) -> Option<(u64, [u8; 3])> {
        if number >= self.view.number(frame.function, self.php.layout.function_op_count) {
            return None;
        }
        let ops = self.view.pointer(frame.function, self.php.layout.function_ops);
        let op = ops.wrapping_add(u64::from(number) * fixed::OP_SIZE as u64);
        Some((op, self.view.array(moved(op, fixed::OP_CODE))?))
    }

    fn rows(&self, table: u64, count: u32, size: usize) -> Cow<'d, [u8]> {
        self.view.bytes(table, if table == 0 { 0 } else { u64::from(count) * size as u64 })
    }

    /// The place of a temporary, by its distance from its frame.
    fn temporary_at(&self, frame: &CallFrame, variable: u32) -> Option<u32> {
        let before = u32::try_from(self.layout.frame_size / 16).expect("a few values");
        let place = (variable / 16).checked_sub(before)?;
        let is_temporary = place.wrapping_sub(frame.variables) < frame.temporaries && place < frame.room;
        is_temporary.then_some(place)
    }
}
