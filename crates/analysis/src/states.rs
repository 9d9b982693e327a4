//! The states of threads while each function was on their stacks.

use borehole_model::{Sample, StackId, Status, Tables};

use crate::counts::Tally;
use crate::view::ThreadStates;

/// The flags that are counted, in the order of [`ThreadStates`].
///
/// Source: CPython 3.15, `_remote_debugging`: has the GIL, on a CPU, waits for the GIL, has an exception.
const FLAGS: [u8; 4] = [1, 2, 8, 16];

pub(crate) const ON_CPU: u8 = 2;

/// Some state was not recorded. In most modes that is the CPU.
const UNKNOWN: u8 = 4;

/// The frame of Python's garbage collection.
const COLLECTING: &[u8] = b"<GC>";

/// Samples per stack and state, for sources that record states.
#[derive(Clone, Debug, Default)]
pub(crate) struct StateCounts {
    /// By stack.
    counts: Vec<[u64; FLAGS.len()]>,
    knows_cpu: bool,
}

impl StateCounts {
    #[inline]
    pub(crate) fn add(&mut self, stack: StackId, sample: &Sample<'_>) {
        let Some(Status(bits)) = sample.status else { return };
        if stack.index() >= self.counts.len() {
            self.counts.resize(stack.index() + 1, [0; FLAGS.len()]);
        }
        self.knows_cpu |= bits & UNKNOWN == 0 || bits & ON_CPU != 0;
        for (sum, flag) in self.counts[stack.index()].iter_mut().zip(FLAGS) {
            *sum = sum.saturating_add(if bits & flag != 0 { sample.count } else { 0 });
        }
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// The number of states: those of the flags, and garbage collection.
    pub(crate) const STATES: usize = FLAGS.len() + 1;

    /// The number of a stack's samples in a state.
    pub(crate) fn tally(&self, state: usize, (stack, all): (StackId, Tally), collecting: &[bool]) -> Tally {
        let flag = |state: usize| self.counts.get(stack.index()).map_or(0, |counts| counts[state]);
        let count = match state {
            state if state < FLAGS.len() => flag(state),
            _ if collecting[stack.index()] => all.count,
            _ => 0,
        };
        Tally { count, value: 0 }
    }

    /// The shares of `all` samples in each state.
    // A percentage does not need more precision than a double has.
    #[expect(clippy::cast_precision_loss)]
    pub(crate) fn shares(&self, all: u64, counts: [u64; Self::STATES]) -> ThreadStates {
        let percent = counts.map(|count| count as f64 * 100.0 / all.max(1) as f64);
        let [has_gil, on_cpu, waits_for_gil, has_exception, in_gc] = percent;
        let on_cpu = Some(on_cpu).filter(|_| self.knows_cpu);
        ThreadStates { has_gil, on_cpu, waits_for_gil, has_exception, in_gc }
    }
}

/// By stack: whether Python was collecting garbage.
pub(crate) fn collecting(tables: &Tables) -> Vec<bool> {
    let name = tables.find_string(COLLECTING);
    let mut found: Vec<bool> = Vec::new();
    for stack in tables.stack_ids() {
        let is_below = tables.parent(stack).is_some_and(|caller| found[caller.index()]);
        found.push(is_below || Some(tables.function(tables.leaf(stack))) == name);
    }
    found
}
