//! Samples of the program's own threads, which the kernel takes: of their CPU time, and of where they leave the CPU.
//!
//! There are no signals here, where the kernel allows no perf events. A handler would interrupt system calls of the program, take
//! the signal from other profilers, and run in code of which a library knows nothing.

use std::collections::HashMap;
use std::time::Duration;
use std::{fs, io};

use borehole_native::{NativeStack, SectionPool, StackEnd, Unwinder};
use borehole_process::{
    ErrorKind, ForeignProcess as _, PerfEvents, PerfRecord, PerfSample, PerfTrigger, Process, Registers,
};

use crate::events::CpuSampleEvent;
use crate::recorder::Handle;
use crate::source::{Source, SourceState};
use crate::trc::StackFrames;
use crate::trc::dial9::{OFF_CPU, UNKNOWN_WORKER, metadata};

/// The bytes copied of a stack. Those of futures in futures are deep.
const STACK_BYTES: u32 = 32 << 10;

/// The time from one look at the kernel's buffer to the next. Without privileges, it has room for 16 stacks of each CPU.
const EVERY: Duration = Duration::from_millis(10);

/// The number of looks until mappings and names of threads are read again: ten seconds.
const REFRESH_PAUSE: u32 = 1000;

/// The most frames that are recorded of a stack.
const MOST_FRAMES: usize = 512;

/// The most names of threads that are remembered.
const MOST_NAMES: usize = 4096;

impl Handle {
    /// Takes `hertz` samples of each second of CPU time of each thread of the program, as [`CpuSampleEvent`]s. Time in the kernel
    /// counts for the function that called it.
    ///
    /// # Errors
    /// If the system does not allow perf events: the error says what would help. Or if it cannot create a thread.
    pub fn sample_cpu(&self, hertz: u32) -> io::Result<()> {
        let hertz = hertz.max(1);
        self.sample_threads("cpu_samples", PerfTrigger::CpuTime(1_000_000_000 / u64::from(hertz)))?;
        self.set_metadata(metadata::CPU_HZ, &hertz.to_string());
        Ok(())
    }

    /// Takes a sample each time that a thread of the program leaves the CPU: where it waits, or was interrupted.
    ///
    /// # Errors
    /// As [`Self::sample_cpu`]. The system must allow samples in the kernel.
    pub fn sample_off_cpu(&self) -> io::Result<()> {
        self.sample_threads("off_cpu_samples", PerfTrigger::LeavesCpu)
    }

    fn sample_threads(&self, name: &'static str, trigger: PerfTrigger) -> io::Result<()> {
        let source = ThreadSamples::open(name, trigger).map_err(|error| {
            let kind = match error.kind() {
                ErrorKind::Denied => io::ErrorKind::PermissionDenied,
                _ => io::ErrorKind::Unsupported,
            };
            io::Error::new(kind, error)
        })?;
        self.look_up_names()?;
        self.add_source(Box::new(source))
    }
}

/// The samples of one kind.
struct ThreadSamples {
    name: &'static str,
    events: PerfEvents,
    stacks: OwnStacks,
    names: ThreadNames,
    /// The sample's field `source`.
    is_off_cpu: bool,
    lost: u64,
    pause: u32,
}

/// Unwinds copies of the stacks of this process.
struct OwnStacks {
    process: Process,
    unwinder: Unwinder,
    stack: NativeStack,
    /// Whether code was mapped since the mappings were read.
    is_stale: bool,
    /// The stacks of which only a part is known.
    cut: u64,
    addresses: Vec<u64>,
}

/// The names of threads by their numbers.
#[derive(Default)]
struct ThreadNames(HashMap<i32, Option<String>>);

impl ThreadSamples {
    fn open(name: &'static str, trigger: PerfTrigger) -> Result<Self, borehole_process::Error> {
        let id = i32::try_from(std::process::id()).unwrap_or_default();
        let stacks = OwnStacks::open(id)?;
        let events = PerfEvents::open(id, &stacks.process.threads()?, trigger, STACK_BYTES)?;
        let is_off_cpu = trigger == PerfTrigger::LeavesCpu;
        let names = ThreadNames::default();
        Ok(Self { name, events, stacks, names, is_off_cpu, lost: 0, pause: REFRESH_PAUSE })
    }

    /// States how many samples are missing, if there are more than before.
    fn tell(&self, handle: &Handle, before: (u64, u64)) {
        for (what, now, before) in [("lost", self.lost, before.0), ("cut", self.stacks.cut, before.1)] {
            if now > before {
                handle.set_metadata(&format!("{}.{what}", self.name), &now.to_string());
            }
        }
    }
}

impl Source for ThreadSamples {
    fn name(&self) -> &str {
        self.name
    }

    fn interval(&self) -> Duration {
        EVERY
    }

    fn sample(&mut self, handle: &Handle) -> SourceState {
        let before = (self.lost, self.stacks.cut);
        self.pause -= 1;
        if self.pause == 0 {
            self.pause = REFRESH_PAUSE;
            self.stacks.is_stale |= self.stacks.unwinder.met_unknown_code();
            self.names.0.clear();
        }
        let Self { events, stacks, names, is_off_cpu, lost, .. } = self;
        events.read(|record| match record {
            PerfRecord::Sample(sample) => {
                let addresses = stacks.unwind(&sample);
                if addresses.is_empty() {
                    *lost += 1;
                    return;
                }
                handle.name_sample(addresses);
                handle.record(&CpuSampleEvent {
                    timestamp_ns: sample.time_ns,
                    worker_id: UNKNOWN_WORKER.into(),
                    tid: sample.thread.unsigned_abs(),
                    source: u8::from(*is_off_cpu),
                    thread_name: names.of(sample.thread),
                    callchain: StackFrames::from(addresses),
                    cpu: None,
                });
            }
            PerfRecord::Lost(count) => *lost += count,
            PerfRecord::Mapped => stacks.is_stale = true,
            PerfRecord::Back { .. } => {}
        });
        self.tell(handle, before);
        SourceState::Continues
    }
}

/// [`CpuSampleEvent::source`] is a flag.
const _: () = assert!(OFF_CPU == 1, "samples off the CPU have another number");

impl OwnStacks {
    fn open(id: i32) -> Result<Self, borehole_process::Error> {
        let process = Process::open(id)?;
        let (mut unwinder, mut stack) = (Unwinder::new(&SectionPool::default()), NativeStack::default());
        // The tables of the program are read before there are samples, which the kernel would lose meanwhile. The stack is that of
        // no call.
        let ip = (Self::open as fn(i32) -> Result<Self, borehole_process::Error>) as usize as u64;
        let registers = Registers { ip, sp: std::ptr::from_ref(&id).addr() as u64, bp: 0 };
        unwinder.unwind(&process, registers, &mut stack)?;
        Ok(Self { process, unwinder, stack, is_stale: false, cut: 0, addresses: Vec::new() })
    }

    /// The addresses of a stack, the leaf first: where it is, and where its callers go on. Empty if nothing is known of it.
    fn unwind(&mut self, sample: &PerfSample<'_>) -> &[u64] {
        self.addresses.clear();
        if std::mem::take(&mut self.is_stale) {
            // What is known must do if the mappings cannot be read.
            let _ = self.process.refresh();
            self.unwinder.forget();
        }
        let Some(registers) = sample.registers else { return &[] };
        // What was followed before an error is right.
        let _ = self.unwinder.unwind_given(&self.process, registers, sample.stack, &mut self.stack);
        self.cut += u64::from(self.stack.end != StackEnd::Root);
        let frames = self.stack.frames.iter().take(MOST_FRAMES);
        // The unwinder has an address within the call.
        let places =
            frames.enumerate().map(|(depth, frame)| frame.address.saturating_add(u64::from(depth > 0)));
        self.addresses.extend(places);
        &self.addresses
    }
}

impl ThreadNames {
    fn of(&mut self, thread: i32) -> Option<&str> {
        if self.0.len() >= MOST_NAMES {
            self.0.clear();
        }
        self.0.entry(thread).or_insert_with(|| read_name(thread)).as_deref()
    }
}

/// The name of a thread; `None` if it has ended.
fn read_name(thread: i32) -> Option<String> {
    let name = fs::read(format!("/proc/self/task/{thread}/comm")).ok()?;
    Some(String::from_utf8_lossy(name.trim_ascii_end()).into_owned())
}
