//! The time that the threads of a program spend off the CPU, from the kernel's switches between threads.

use std::collections::HashMap;

use borehole_model::{StackId, Tables};
use borehole_process::{ForeignProcess as _, PerfEvents, PerfTrigger, Process};

use crate::error::Error;
use crate::native::NativeSampler;
use crate::program_records::{HeldRecord, HeldRecords, ThreadMoment};
use crate::python::plain_status;
use crate::schedule::now_ns;
use crate::subject::{Look, TakenSample};

/// The bytes copied of a stack. Switches are frequent, so copies do not grow.
const STACK_BYTES: u32 = 16 << 10;

/// How long a record may take to its buffer. Later ones wait for the next time: those of other CPUs may be read already.
const SETTLING_NS: u64 = 1_000_000;

/// The waits of a program. Time off the CPU is measured at points that are a period apart: a wait counts those that fall into it.
/// Waits between two points are not unwound.
#[derive(Debug)]
pub(crate) struct ProgramWaits {
    events: PerfEvents,
    period_ns: u64,
    /// The switches that are not counted yet.
    switches: HeldRecords,
    /// The threads that are off the CPU.
    waits: HashMap<i32, Wait>,
}

/// A wait that is not over.
#[derive(Debug)]
struct Wait {
    /// Until when it is counted.
    counted_ns: u64,
    state: WaitState,
}

#[derive(Debug)]
enum WaitState {
    /// As it left the CPU.
    Left(ThreadMoment),
    Unwound {
        stack: StackId,
        omitted: u64,
    },
    /// Without any frame.
    Unknown,
}

impl ProgramWaits {
    /// Begins to watch the threads of a process. Waits count from when a thread leaves a CPU for the first time.
    pub(crate) fn open(process: &Process, period_ns: u64) -> Result<Self, Error> {
        let threads = process.threads()?;
        let events = PerfEvents::open(process.id(), &threads, PerfTrigger::LeavesCpu, STACK_BYTES)?;
        Ok(Self { events, period_ns, switches: HeldRecords::default(), waits: HashMap::new() })
    }

    /// Drops all ids of tables. Waits that last are lost.
    pub(crate) fn forget(&mut self) {
        self.switches.lose(self.waits.len() as u64);
        self.waits.clear();
    }

    /// Counts the waits since the last time, in the order of time.
    pub(crate) fn take(
        &mut self,
        process: &mut Process,
        native: &mut NativeSampler,
        tables: &mut Tables,
    ) -> Result<Vec<TakenSample>, Error> {
        let horizon_ns = now_ns().saturating_sub(SETTLING_NS);
        self.switches.read(&mut self.events);
        self.switches.report(process, native);
        let mut taken = Vec::new();
        let (records, period_ns) = (self.switches.take_until(horizon_ns), self.period_ns);
        let mut lost = 0;
        let mut counting = Counting { process, native, tables, switches: &self.switches, period_ns };
        for HeldRecord { thread, time_ns, state: left } in records {
            if let Some(mut wait) = self.waits.remove(&thread) {
                match left {
                    None => taken.extend(counting.count(thread, &mut wait, time_ns)?),
                    // The record that it was back is lost.
                    Some(_) => lost += 1,
                }
            }
            if let Some(left) = left {
                self.waits.insert(thread, Wait { counted_ns: time_ns, state: WaitState::Left(left) });
            }
        }
        // What lasts is counted as it goes on. Its stack is unwound while the copy is there.
        for (&thread, wait) in &mut self.waits {
            counting.unwind(wait)?;
            taken.extend(counting.count(thread, wait, horizon_ns)?);
        }
        self.switches.lose(lost);
        self.switches.drop_stacks();
        taken.sort_by_key(|sample| sample.time_ns);
        Ok(taken)
    }
}

/// The means of counting a wait.
struct Counting<'a> {
    process: &'a mut Process,
    native: &'a mut NativeSampler,
    tables: &'a mut Tables,
    switches: &'a HeldRecords,
    period_ns: u64,
}

impl Counting<'_> {
    /// Counts a wait up to a time; `None` if no point in time falls into it.
    fn count(&mut self, thread: i32, wait: &mut Wait, until_ns: u64) -> Result<Option<TakenSample>, Error> {
        let points = |time_ns: u64| time_ns / self.period_ns;
        let count = points(until_ns).saturating_sub(points(wait.counted_ns));
        wait.counted_ns = wait.counted_ns.max(until_ns);
        if count == 0 {
            return Ok(None);
        }
        self.unwind(wait)?;
        let WaitState::Unwound { stack, omitted } = wait.state else { return Ok(None) };
        let status = plain_status(false, thread == self.process.id());
        let sample = |thread| TakenSample { thread, time_ns: until_ns, stack, omitted, status, count };
        Ok(u64::try_from(thread).ok().map(sample))
    }

    /// Unwinds the stack of a wait, unless it is already.
    fn unwind(&mut self, wait: &mut Wait) -> Result<(), Error> {
        let WaitState::Left(moment) = &wait.state else { return Ok(()) };
        let (look, _) = self.switches.unwind(moment, self.process, self.native, self.tables)?;
        wait.state = match look {
            Look::Stack { stack, omitted } => WaitState::Unwound { stack, omitted },
            Look::Idle | Look::Torn | Look::Ended => WaitState::Unknown,
        };
        Ok(())
    }
}
