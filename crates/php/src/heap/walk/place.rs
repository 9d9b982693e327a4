//! The place of a frame in its function: the current instruction, which decides which of its values are live, and its line.

use super::reader::HeapReader;
use crate::layout::fixed;
use crate::opcodes;
use crate::remote::{moved, u64_at};

/// The instructions that a generator waits after.
const YIELDS: [&str; 2] = ["ZEND_YIELD", "ZEND_YIELD_FROM"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Activity {
    /// It is at an instruction: it runs, or waits for the function called there.
    Calls,
    /// It belongs to a generator, which continues with its instruction when resumed.
    Waits,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FramePosition {
    /// The number of the instruction that was started last.
    pub(super) position: Option<u64>,
    pub(super) line: Option<u32>,
    /// Whether an exception is leaving it.
    pub(super) is_raising: bool,
}

impl HeapReader<'_> {
    pub(super) fn place_of(&self, frame: u64, function: u64, op: u64, activity: Activity) -> FramePosition {
        if op == 0 {
            return FramePosition::default();
        }
        if self.is_exception_op(op) {
            return self.place_of_raising(frame, function);
        }
        let next = self.own(function, op);
        let position = match activity {
            // PHP advances a generator to its next instruction before it waits. A generator running in a fiber has not been
            // advanced.
            Activity::Waits if self.is_yield(op.wrapping_sub(fixed::OP_SIZE as u64)) => {
                next.and_then(|next| next.checked_sub(1))
            }
            Activity::Waits | Activity::Calls => next,
        };
        FramePosition { position, line: self.view.u32(moved(op, fixed::OP_LINE)), is_raising: false }
    }

    /// Whether an exception is leaving the frame with this header.
    pub(super) fn is_raising(&self, header: &[u8; 80]) -> bool {
        u64_at(header, fixed::FRAME_OP).is_some_and(|op| self.is_exception_op(op))
    }

    /// Whether `op` is one of those in the executor's state, which handle an exception.
    fn is_exception_op(&self, op: u64) -> bool {
        let end = moved(self.executor.globals, self.php.layout.executor_size);
        (self.executor.globals..end).contains(&op)
    }

    fn is_yield(&self, op: u64) -> bool {
        let code = self.view.array(moved(op, fixed::OP_CODE));
        let name = code.and_then(|[code]| opcodes::name(self.php.identity.release, code));
        name.is_some_and(|name| YIELDS.contains(&name))
    }

    /// The place of a frame while an exception leaves it. Only the instruction that raised the last exception is known.
    fn place_of_raising(&self, frame: u64, function: u64) -> FramePosition {
        let layout = self.php.layout;
        let raised = self.view.pointer(self.executor.globals, layout.executor_before_exception);
        let position = self.own(function, raised);
        let flags = self.view.number(function, fixed::FUNCTION_FLAGS);
        let line = match (position, self.failed) {
            (Some(_), _) => self.view.u32(moved(raised, fixed::OP_LINE)),
            (None, Some(chain)) if chain.innermost == frame => Some(chain.line),
            _ if flags >> layout.function_made_up_bit & 1 == 1 => None,
            // Like in stacks.
            _ => self.view.u32(moved(function, layout.function_file + 12)),
        };
        FramePosition { position, line, is_raising: true }
    }

    fn own(&self, function: u64, op: u64) -> Option<u64> {
        let distance = op.checked_sub(self.view.pointer(function, self.php.layout.function_ops))?;
        let number = distance / fixed::OP_SIZE as u64;
        let count = self.view.number(function, self.php.layout.function_op_count);
        (distance.is_multiple_of(fixed::OP_SIZE as u64) && number < u64::from(count)).then_some(number)
    }
}
