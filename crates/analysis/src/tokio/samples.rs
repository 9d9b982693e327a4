//! Events that carry a stack: samples of threads and sampled allocations.

use borehole_model::dial9::{OFF_CPU, is_worker};
use borehole_model::{Event, Value};

use super::field;
use super::memory::AllocationSamples;
use super::plan::{EventSort, ShapePlan};
use super::poll_samples::{PollSamples, ThreadSample};
use super::stacks::NamedStacks;
use super::view::LimitRow;

/// Samples, and the stacks that they share.
#[derive(Debug, Default)]
pub(super) struct SampleRecords {
    pub(super) on_cpu: PollSamples,
    pub(super) off_cpu: PollSamples,
    pub(super) memory: AllocationSamples,
    pub(super) stacks: NamedStacks,
}

impl SampleRecords {
    pub(super) fn cpu_sample(&mut self, plan: ShapePlan, event: &Event<'_>, time_ns: u64) {
        let stack = self.stack(plan, event);
        let worker = plan.number(event, field::WORKER).filter(|&worker| is_worker(worker));
        let is_off_cpu = plan.number(event, field::SAMPLE_SOURCE) == Some(OFF_CPU);
        let samples = if is_off_cpu { &mut self.off_cpu } else { &mut self.on_cpu };
        let thread = plan.number(event, field::THREAD);
        let count =
            plan.number(event, field::COUNT).map_or(1, |count| u32::try_from(count).unwrap_or(u32::MAX));
        samples.add(ThreadSample { time_ns, thread, worker, stack, count });
    }

    /// Samples and allocations of which only a part was followed.
    pub(super) fn limits(&self) -> [LimitRow; 3] {
        [self.on_cpu.limit("CPU samples"), self.off_cpu.limit("off-CPU samples"), self.memory.limit()]
    }

    fn stack(&mut self, plan: ShapePlan, event: &Event<'_>) -> Option<u32> {
        match plan.value(event, field::STACK)? {
            Value::Stack(stack) => self.stacks.row(*stack),
            _ => None,
        }
    }

    pub(super) fn memory_event(&mut self, plan: ShapePlan, event: &Event<'_>, time_ns: u64) {
        if plan.sort == EventSort::Overflow {
            let dropped =
                [field::LOST, field::LOST_FREES].map(|field| plan.number(event, field).unwrap_or(0));
            return self.memory.dropped(dropped[0].saturating_add(dropped[1]));
        }
        let Some(address) = plan.number(event, field::ADDRESS) else { return };
        if plan.sort == EventSort::Free {
            if let Some(allocated_ns) = plan.number(event, field::ALLOCATED_AT) {
                self.memory.freed(address, allocated_ns);
            }
        } else if let Some(size) = plan.number(event, field::SIZE) {
            let stack = self.stack(plan, event);
            self.memory.allocated(address, time_ns, size, stack);
        }
    }

    pub(super) fn symbol(&mut self, plan: ShapePlan, event: &Event<'_>) {
        if let (Some(address), Some(name)) =
            (plan.number(event, field::ADDRESS), plan.text(event, field::NAME))
        {
            self.stacks.symbol(address, name, plan.number(event, field::INLINE_DEPTH).unwrap_or(0));
        }
    }
}
