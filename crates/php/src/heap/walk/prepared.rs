//! Calls being prepared, whose arguments wait on the stack while others are evaluated.
//!
//! Their number is not stored. As in PHP's cleanup after an exception, the search goes back from the current instruction: the
//! first instruction found that sends an argument tells which one it was, and the instruction that began the call ends the
//! search.
//!
//! Source: `cleanup_unfinished_calls` in `Zend/zend_execute.c`, and `zend_vm_opcodes.h`, of PHP 7.0 to 8.5, in which the
//! numbers of these instructions have not changed.

use borehole_heap::{HeapSink, LocationType, NodeId, NodeType};

use super::{Extent, HeapReader, HeapWalker, NodeLink, VisitKind};
use crate::layout::fixed;
use crate::remote::{moved, u64_at};

/// `IS_CONST`: the argument is named.
const BY_NAME: u8 = 1;
/// The maximum number of nested calls being prepared.
const MOST_CALLS: u64 = 1024;

/// The effect of an instruction on a call being prepared.
enum CallEffect {
    /// Begins it: `INIT_*` and `NEW`.
    Begin,
    /// Passes one argument: `SEND_*`.
    Send,
    /// Passes several arguments and counts them: `SEND_ARRAY`, `SEND_UNPACK`.
    SendMany,
    /// Makes the call: `DO_*`, `CALLABLE_CONVERT`.
    Call,
    Other,
}

const fn step(code: u8) -> CallEffect {
    match code {
        59 | 61 | 68 | 69 | 112 | 113 | 118 | 128 | 209 => CallEffect::Begin,
        50 | 65 | 66 | 67 | 106 | 116 | 117 | 120 | 185 => CallEffect::Send,
        119 | 165 => CallEffect::SendMany,
        60 | 129 | 130 | 131 | 202 => CallEffect::Call,
        _ => CallEffect::Other,
    }
}

impl<S: HeapSink> HeapWalker<'_, S> {
    /// Visits the calls that the frame of `node` prepares, from `call` outwards. `position` is the number of its instruction.
    pub(super) fn prepared_calls(&mut self, node: NodeId, function: u64, position: u64, call: u64) {
        let ops = self.heap.view.pointer(function, self.heap.php.layout.function_ops);
        let (mut call, mut position) = (call, position);
        for number in 0..MOST_CALLS {
            let spot = self.heap.spot(call);
            if call == 0 || self.graph.seen.node(&spot).is_some() {
                return;
            }
            let Some(header) = self.heap.view.array::<80>(call) else { return };
            let given = self.heap.view.number(call, fixed::FRAME_GIVEN);
            let Some((sent, begin)) = self.heap.sent(ops, position, given) else { return };
            let sent = self.heap.fitting(moved(call, self.heap.layout.frame_size), sent, 16);
            let name = self.graph.name(&format!("prepared_call[{number}]"));
            let prepared =
                self.graph.node_at(NodeType::CALL_FRAME_VARIABLE_TABLE, NodeLink::strong(node, name), &spot);
            let size = self.heap.layout.frame_size as u64 + u64::from(sent) * 16;
            let extent = Extent::new(LocationType::CALL_FRAME_VARIABLE_TABLE, size);
            self.graph.locate_within(prepared, &spot, extent, 0);
            self.prepared_call(prepared, call, &header, sent);
            let Some(before) = begin.checked_sub(1) else { return };
            position = before;
            call = u64_at(&header, self.heap.php.layout.frame_previous).unwrap_or_default();
        }
    }

    /// Visits the parts of a call so far: its function, its object, its arguments.
    fn prepared_call(&mut self, node: NodeId, call: u64, header: &[u8; 80], sent: u32) {
        let function = u64_at(header, fixed::FRAME_FUNCTION).unwrap_or_default();
        self.name_function(node, function);
        self.count_attribute(node, sent.into());
        self.objects_of_call(node, function, header, true);
        self.named_arguments(node, header);
        let first = moved(call, self.heap.layout.frame_size);
        for number in 0..sent {
            let address = first + u64::from(number) * 16;
            if self.heap.is_sent(address) {
                let name = self.graph.name(&format!("$args[{number}]"));
                self.later(NodeLink::strong(node, name), VisitKind::Value, address);
            }
        }
    }
}

impl HeapReader<'_> {
    /// Whether a plausible value is at `address`, where it is uncertain that one was written.
    pub(super) fn is_sent(&self, address: u64) -> bool {
        let Some(value) = self.view.array::<16>(address) else { return false };
        // Its flags say whether its target is counted.
        let (kind, is_counted) = (value[8], value[9] != 0);
        let pointer = u64_at(&value, 0).unwrap_or_default();
        (1..=10).contains(&kind) && (!is_counted || self.is_counted_at(pointer, kind))
    }

    /// Whether a counted value of the type `kind` begins at `address`: a block with this type in its header.
    pub(super) fn is_counted_at(&self, address: u64, kind: u8) -> bool {
        let header = self.view.u32(moved(address, 4)).unwrap_or_default();
        let is_there = self.is_listed_object(address) || self.room(address).is_some();
        is_there && header & self.layout.header_kind == u32::from(kind)
    }

    /// The number of arguments passed so far to the innermost call being prepared at an instruction, and the number of the
    /// instruction that began the call.
    fn sent(&self, ops: u64, position: u64, given: u32) -> Option<(u32, u64)> {
        let (mut inner, mut sent) = (0_u32, None);
        let mut at = position;
        loop {
            let op = ops.checked_add(at.checked_mul(fixed::OP_SIZE as u64)?)?;
            let [code, _, second] = self.view.array(moved(op, fixed::OP_CODE))?;
            debug_assert_eq!(fixed::OP_SECOND_TYPE - fixed::OP_CODE, 2);
            match step(code) {
                CallEffect::Call => inner += 1,
                // The current instruction has not completed yet.
                CallEffect::Begin | CallEffect::Send | CallEffect::SendMany if at == position => {}
                CallEffect::Begin if inner == 0 => return Some((sent.unwrap_or(0), at)),
                CallEffect::Begin => inner -= 1,
                CallEffect::Send if inner == 0 && sent.is_none() => {
                    let number =
                        if second == BY_NAME { given } else { self.view.number(op, fixed::OP_SECOND) };
                    sent = Some(number);
                }
                CallEffect::SendMany if inner == 0 && sent.is_none() => sent = Some(given),
                CallEffect::Send | CallEffect::SendMany | CallEffect::Other => {}
            }
            at = at.checked_sub(1)?;
        }
    }
}
