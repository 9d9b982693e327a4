//! Where a frame is in its function: the instruction that says what of its values lives, and its line.

use borehole_heap::HeapSink;

use super::Walker;
use crate::layout::fixed;
use crate::opcodes;
use crate::remote::moved;

/// After what a generator waits.
const YIELDS: [&str; 2] = ["ZEND_YIELD", "ZEND_YIELD_FROM"];

/// What a frame is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Activity {
    /// It is at an instruction: it runs, or waits for what that called.
    Calls,
    /// It is a generator's, which goes on with its instruction when it is asked to.
    Waits,
}

/// A place in a function of a program.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Place {
    /// The number of the instruction that was begun last.
    pub(super) position: Option<u64>,
    pub(super) line: Option<u32>,
    /// Whether an exception is leaving it.
    pub(super) is_raising: bool,
}

impl<S: HeapSink> Walker<'_, S> {
    /// Where the frame at `frame` is whose instruction is at `op`.
    pub(super) fn place_of(&self, frame: u64, function: u64, op: u64, activity: Activity) -> Place {
        if op == 0 {
            return Place::default();
        }
        let end = moved(self.executor.globals, self.php.layout.executor_size);
        if (self.executor.globals..end).contains(&op) {
            return self.place_of_raising(frame, function);
        }
        let next = self.own(function, op);
        let position = match activity {
            // PHP moves a generator to its next instruction before it lets it wait. One that runs in a fiber has not been.
            Activity::Waits if self.is_yield(op.wrapping_sub(fixed::OP_SIZE as u64)) => {
                next.and_then(|next| next.checked_sub(1))
            }
            Activity::Waits | Activity::Calls => next,
        };
        Place { position, line: self.view.u32(moved(op, fixed::OP_LINE)), is_raising: false }
    }

    fn is_yield(&self, op: u64) -> bool {
        let code = self.view.array(moved(op, fixed::OP_CODE));
        let name = code.and_then(|[code]| opcodes::name(self.php.identity.release, code));
        name.is_some_and(|name| YIELDS.contains(&name))
    }

    /// Where a frame is while an exception leaves it: one instruction is known that raised one, that of the last.
    fn place_of_raising(&self, frame: u64, function: u64) -> Place {
        let layout = self.php.layout;
        let raised = self.view.pointer(self.executor.globals, layout.executor_before_exception);
        let position = self.own(function, raised);
        let is_made_up = self.view.number(function, fixed::FUNCTION_FLAGS) & layout.function_made_up != 0;
        let line = match (position, self.other_chain) {
            (Some(_), _) => self.view.u32(moved(raised, fixed::OP_LINE)),
            (None, Some(chain)) if chain.innermost == frame => Some(chain.line),
            _ if is_made_up => None,
            // As in stacks.
            _ => self.view.u32(moved(function, layout.function_line_start + 4)),
        };
        Place { position, line, is_raising: true }
    }

    /// The number of the instruction at `op`, if it is one of the function's.
    fn own(&self, function: u64, op: u64) -> Option<u64> {
        let distance = op.checked_sub(self.view.pointer(function, self.php.layout.function_ops))?;
        let number = distance / fixed::OP_SIZE as u64;
        let count = self.view.number(function, self.php.layout.function_op_count);
        (distance.is_multiple_of(fixed::OP_SIZE as u64) && number < u64::from(count)).then_some(number)
    }
}
