//! The samples that the kernel takes of a program.

use borehole_model::{Status, Tables};
use borehole_process::{
    ForeignProcess as _, KernelCode, PerfEvents, PerfRecord, PerfSample, Process, Registers,
};

use crate::error::Error;
use crate::native::NativeSampler;
use crate::python::plain_status;
use crate::subject::{Look, TakenSample};

/// The first size of a copied stack. Most stacks of programs take less.
const FIRST_STACK_BYTES: u32 = 16 << 10;

/// Copies grow if more than one in this many stacks goes on behind them.
const TOLERATED_CUTS: u64 = 128;

/// The events of a program, and what they have taken.
#[derive(Debug)]
pub(crate) struct ProgramEvents {
    events: PerfEvents,
    period_ns: u64,
    held: Vec<HeldSample>,
    /// The stacks of the held samples, end to end.
    stacks: Vec<u8>,
    /// The stacks since the copies have grown, and those of them that go on behind the copy.
    counted: (u64, u64),
    lost: u64,
    is_mapped: bool,
}

/// A sample that is not unwound yet.
#[derive(Debug)]
struct HeldSample {
    thread: i32,
    time_ns: u64,
    kernel: Vec<u64>,
    registers: Option<Registers>,
    /// The place of its stack.
    stack: (usize, usize),
}

impl ProgramEvents {
    /// Begins to sample the threads of a process.
    pub(crate) fn open(process: &Process, period_ns: u64) -> Result<Self, Error> {
        let events = PerfEvents::open(process.id(), &process.threads()?, period_ns, FIRST_STACK_BYTES)?;
        let (held, stacks) = (Vec::new(), Vec::new());
        Ok(Self { events, period_ns, held, stacks, counted: (0, 0), lost: 0, is_mapped: false })
    }

    /// The facts for the metadata of a file.
    pub(crate) fn said(&self) -> &'static str {
        match self.events.kernel() {
            KernelCode::Sampled => "perf events, of CPU time",
            KernelCode::LeftOut => "perf events, of CPU time outside the kernel",
        }
    }

    /// Unwinds the samples that were taken since the last time, in the order of time.
    pub(crate) fn take(
        &mut self,
        process: &mut Process,
        native: &mut NativeSampler,
        tables: &mut Tables,
    ) -> Result<Vec<TakenSample>, Error> {
        self.hold();
        native.count_lost(std::mem::take(&mut self.lost));
        if std::mem::take(&mut self.is_mapped) {
            // If the process has ended, what is known must do.
            let _ = process.refresh();
            native.forget_code();
        }
        let mut taken = Vec::with_capacity(self.held.len());
        for HeldSample { thread, time_ns, ref kernel, registers, stack } in self.held.drain(..) {
            let copy = &self.stacks[stack.0..stack.1];
            let (look, is_short) = native.taken(process, kernel, registers, copy, tables)?;
            self.counted.0 += 1;
            self.counted.1 += u64::from(is_short);
            if let Look::Stack { stack, omitted } = look
                && let Ok(number) = u64::try_from(thread)
            {
                let status: Status = plain_status(true, thread == process.id());
                taken.push(TakenSample { thread: number, time_ns, stack, omitted, status });
            }
        }
        self.stacks.clear();
        self.grow(process);
        Ok(taken)
    }

    /// Copies all records, and sorts the samples by time.
    fn hold(&mut self) {
        let Self { events, held, stacks, lost, is_mapped, .. } = self;
        events.read(|record| match record {
            PerfRecord::Sample(PerfSample { thread, time_ns, kernel, registers, stack, .. }) => {
                let start = stacks.len();
                stacks.extend_from_slice(stack);
                held.push(HeldSample { thread, time_ns, kernel, registers, stack: (start, stacks.len()) });
            }
            PerfRecord::Lost(count) => *lost += count,
            PerfRecord::Mapped => *is_mapped = true,
        });
        held.sort_by_key(|sample| sample.time_ns);
    }

    /// Copies more of stacks from now on, if what is copied is often too little.
    fn grow(&mut self, process: &Process) {
        let (stacks, short) = self.counted;
        if short * TOLERATED_CUTS <= stacks || !self.events.can_grow() {
            return;
        }
        self.counted = (0, 0);
        let bytes = self.events.stack_bytes().saturating_mul(2);
        let threads = process.threads().unwrap_or_default();
        // If larger ones are not to be had, the copies stay as they are.
        if let Ok(events) = PerfEvents::open(process.id(), &threads, self.period_ns, bytes) {
            // What these have taken meanwhile is unwound next time.
            self.hold();
            self.events = events;
        }
    }
}
