//! The stacks of tasks that waited long, where Tokio can tell them.

use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll};

use borehole_recorder::trc::{StackFrames, TraceEvent};
use borehole_recorder::{capture_stack, now_ns};
use tokio::runtime::dump::trace_with;

use crate::lane::RuntimeLane;

/// The stack of a task that waited: from the operation that it waited for to its outermost future. Source:
/// `dial9-tokio-telemetry` 0.5.7.
#[derive(TraceEvent, Clone, Debug, PartialEq, Eq)]
#[traceevent(wire_slot)]
#[non_exhaustive]
pub struct TaskDumpEvent<'a> {
    /// The time at which it began to wait.
    #[traceevent(timestamp)]
    pub timestamp_ns: u64,
    /// The task.
    pub task_id: u64,
    /// Return addresses, the leaf first. A task that waits for several things at once has an event for each.
    #[traceevent(pooled)]
    pub callchain: StackFrames<'a>,
}

/// The most frames of a stack.
const MOST_FRAMES: usize = 128;

/// The most things that a task is seen to wait for at once.
const MOST_LEAVES: usize = 16;

/// The stacks at which a task waits.
#[derive(Default)]
pub(crate) struct TaskDumps {
    stacks: Vec<Vec<u64>>,
    /// The time at which it began to wait; 0 if the stacks are not known.
    since_ns: u64,
    /// Whether the last poll looked for stacks. Looking wakes the task, and so the poll after it does not.
    has_looked: bool,
}

impl TaskDumps {
    /// Polls, and records the stacks of before if the task waited long.
    pub(crate) fn poll<F: Future>(
        &mut self,
        mut future: Pin<&mut F>,
        context: &mut Context<'_>,
        lane: &RuntimeLane,
        task_id: u64,
    ) -> Poll<F::Output> {
        let idle_ns = lane.state().dump_idle_ns();
        if idle_ns == u64::MAX {
            return future.poll(context);
        }
        if self.since_ns > 0 && now_ns().saturating_sub(self.since_ns) >= idle_ns {
            self.record(lane, task_id);
        }
        let result = future.as_mut().poll(context);
        if result.is_ready() || mem::take(&mut self.has_looked) {
            return result;
        }
        self.look(future, context)
    }

    /// Polls once more, in a mode in which each operation that waits tells its stack instead.
    fn look<F: Future>(&mut self, future: Pin<&mut F>, context: &mut Context<'_>) -> Poll<F::Output> {
        self.stacks.clear();
        let stacks = &mut self.stacks;
        let mut result = Poll::Pending;
        trace_with(
            || result = future.poll(context),
            |leaf| {
                if stacks.len() < MOST_LEAVES {
                    let mut stack = Vec::new();
                    let root = leaf.root_addr.map_or(std::ptr::null(), <*const _>::cast);
                    capture_stack(&mut stack, MOST_FRAMES, leaf.trace_leaf_addr.cast(), root);
                    stacks.push(stack);
                }
            },
        );
        self.has_looked = true;
        self.since_ns = now_ns();
        result
    }

    fn record(&mut self, lane: &RuntimeLane, task_id: u64) {
        let timestamp_ns = mem::take(&mut self.since_ns);
        for stack in self.stacks.drain(..).filter(|stack| !stack.is_empty()) {
            lane.handle().name_stack(&stack);
            let callchain = StackFrames::from(&stack[..]);
            lane.handle().record(&TaskDumpEvent { timestamp_ns, task_id, callchain });
        }
    }
}
