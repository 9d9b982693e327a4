//! The records of perf events of a program that are not evaluated yet.

use borehole_model::Tables;
use borehole_process::{PerfEvents, PerfRecord, PerfSample, Process, Registers};

use crate::error::Error;
use crate::native::NativeSampler;
use crate::subject::Look;

/// Records of one process, in the order of time.
#[derive(Debug, Default)]
pub(crate) struct HeldRecords {
    records: Vec<HeldRecord>,
    /// The copied stacks of the records, end to end.
    stacks: Vec<u8>,
    lost: u64,
    is_mapped: bool,
}

/// A record of a thread.
#[derive(Debug)]
pub(crate) struct HeldRecord {
    pub(crate) thread: i32,
    pub(crate) time_ns: u64,
    /// The state of the thread; `None` if it is back on a CPU.
    pub(crate) state: Option<ThreadMoment>,
}

/// The state of a thread at one moment.
#[derive(Debug)]
pub(crate) struct ThreadMoment {
    kernel: Vec<u64>,
    registers: Option<Registers>,
    /// The place of its stack.
    stack: (usize, usize),
}

impl HeldRecords {
    /// Copies what the kernel has written since the last time.
    pub(crate) fn read(&mut self, events: &mut PerfEvents) {
        let Self { records, stacks, lost, is_mapped } = self;
        events.read(|record| match record {
            PerfRecord::Sample(PerfSample { thread, time_ns, kernel, registers, stack, .. }) => {
                let start = stacks.len();
                stacks.extend_from_slice(stack);
                let state = Some(ThreadMoment { kernel, registers, stack: (start, stacks.len()) });
                records.push(HeldRecord { thread, time_ns, state });
            }
            PerfRecord::Back { thread, time_ns } => {
                records.push(HeldRecord { thread, time_ns, state: None });
            }
            PerfRecord::Lost(count) => *lost += count,
            PerfRecord::Mapped => *is_mapped = true,
        });
        records.sort_by_key(|record| record.time_ns);
    }

    /// Counts samples that no record has any more.
    pub(crate) fn lose(&mut self, samples: u64) {
        self.lost += samples;
    }

    /// The samples that were lost since this was last reported.
    pub(crate) fn lost(&self) -> u64 {
        self.lost
    }

    /// Tells the sampler what was lost, and that code was mapped.
    pub(crate) fn report(&mut self, process: &mut Process, native: &mut NativeSampler) {
        native.count_lost(std::mem::take(&mut self.lost));
        if std::mem::take(&mut self.is_mapped) {
            // If the process has ended, what is known must do.
            let _ = process.refresh();
            native.forget_code();
        }
    }

    /// Removes the records up to a time. Their stacks are there until [`Self::drop_stacks`].
    pub(crate) fn take_until(&mut self, time_ns: u64) -> Vec<HeldRecord> {
        let end = self.records.partition_point(|record| record.time_ns <= time_ns);
        self.records.drain(..end).collect()
    }

    /// The stack of a thread at a moment, and whether the copy of it was too short.
    pub(crate) fn unwind(
        &self,
        moment: &ThreadMoment,
        process: &mut Process,
        native: &mut NativeSampler,
        tables: &mut Tables,
    ) -> Result<(Look, bool), Error> {
        let copy = &self.stacks[moment.stack.0..moment.stack.1];
        native.taken(process, &moment.kernel, moment.registers, copy, tables)
    }

    /// Drops the stacks of the records that were taken.
    pub(crate) fn drop_stacks(&mut self) {
        let mut kept = Vec::new();
        for moment in self.records.iter_mut().filter_map(|record| record.state.as_mut()) {
            let start = kept.len();
            kept.extend_from_slice(&self.stacks[moment.stack.0..moment.stack.1]);
            moment.stack = (start, kept.len());
        }
        self.stacks = kept;
    }
}
