//! The samples that the kernel takes of a program.

use borehole_model::{Status, Tables};
use borehole_process::{ForeignProcess as _, KernelCode, PerfEvents, PerfTrigger, Process};

use crate::error::Error;
use crate::event_pace::EventPace;
use crate::native::NativeSampler;
use crate::program_records::HeldRecords;
use crate::python::plain_status;
use crate::subject::{Look, TakenSample};
use crate::thread_files;

/// The first size of a copied stack. Most stacks of programs take less.
const FIRST_STACK_BYTES: u32 = 16 << 10;

/// Copies grow if more than one in this many stacks goes on behind them.
const TOLERATED_CUTS: u64 = 128;

/// The events of a program, and what they have taken.
#[derive(Debug)]
pub(crate) struct ProgramEvents {
    events: PerfEvents,
    pace: EventPace,
    held: HeldRecords,
    /// The stacks since the copies have grown, and those of them that go on behind the copy.
    counted: (u64, u64),
}

impl ProgramEvents {
    /// Begins to sample the threads of a process.
    pub(crate) fn open(process: &Process, period_ns: u64) -> Result<Self, Error> {
        let events = PerfEvents::open(
            process.id(),
            &process.threads()?,
            PerfTrigger::CpuTime(period_ns),
            FIRST_STACK_BYTES,
        )?;
        let used_ns = used_ns(process, events.kernel()).unwrap_or(0);
        let pace = EventPace::new(period_ns, used_ns);
        Ok(Self { events, pace, held: HeldRecords::default(), counted: (0, 0) })
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
        self.held.read(&mut self.events);
        let lost = self.held.lost();
        self.held.report(process, native);
        let records = self.held.take_until(u64::MAX);
        let mut taken = Vec::with_capacity(records.len());
        for record in records {
            let Some(moment) = record.state.filter(|_| self.pace.keeps_next()) else { continue };
            let (look, is_short) = self.held.unwind(&moment, process, native, tables)?;
            self.counted.0 += 1;
            self.counted.1 += u64::from(is_short);
            if let Look::Stack { stack, omitted } = look
                && let Ok(number) = u64::try_from(record.thread)
            {
                let status: Status = plain_status(true, record.thread == process.id());
                let time_ns = record.time_ns;
                taken.push(TakenSample { thread: number, time_ns, stack, omitted, status, count: 1 });
            }
        }
        self.held.drop_stacks();
        self.quicken(process, lost);
        self.grow(process);
        Ok(taken)
    }

    /// Lets the system take records more often from now on, if it takes none of much of the CPU time.
    fn quicken(&mut self, process: &Process, lost: u64) {
        let used_ns = used_ns(process, self.events.kernel());
        if used_ns.is_some_and(|used_ns| self.pace.is_too_slow(used_ns, lost)) {
            self.pace.quicken();
            self.reopen(process, self.events.stack_bytes());
        }
    }

    /// Copies more of stacks from now on, if what is copied is often too little.
    fn grow(&mut self, process: &Process) {
        let (stacks, short) = self.counted;
        if short * TOLERATED_CUTS <= stacks || !self.events.can_grow() {
            return;
        }
        self.counted = (0, 0);
        self.reopen(process, self.events.stack_bytes().saturating_mul(2));
    }

    /// Replaces the events. If others are not to be had, they stay as they are.
    fn reopen(&mut self, process: &Process, stack_bytes: u32) {
        let threads = process.threads().unwrap_or_default();
        let trigger = PerfTrigger::CpuTime(self.pace.event_ns());
        if let Ok(events) = PerfEvents::open(process.id(), &threads, trigger, stack_bytes) {
            // What these have taken meanwhile is unwound next time.
            self.held.read(&mut self.events);
            self.events = events;
        }
    }
}

/// The CPU time that the events of a process account for.
fn used_ns(process: &Process, kernel: KernelCode) -> Option<u64> {
    let [outside, within] = thread_files::used_cpu_ns(process.id())?;
    Some(match kernel {
        KernelCode::Sampled => outside.saturating_add(within),
        KernelCode::LeftOut => outside,
    })
}
