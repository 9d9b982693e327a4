//! A process that runs any program, as a subject to sample: its native stacks.

use std::collections::HashMap;
use std::time::Duration;

use borehole_model::{StackId, Status, Tables};
use borehole_process::{ErrorKind, ForeignProcess as _, Process, Registers, Stopper};

use crate::error::Error;
use crate::native::{NativeFrames, NativeSampler, NativeSettings};
use crate::native_counts::NativeCounts;
use crate::options::nanoseconds;
use crate::program_events::ProgramEvents;
use crate::program_waits::ProgramWaits;
use crate::python::{SampledThreads, plain_status};
use crate::resting::RestWatch;
use crate::subject::{Look, Patience, Subject, TakenSample};
use crate::thread_files::{self, ThreadState};

/// The points in time from one list of threads to the next.
const RELIST_PAUSE: u32 = 8;

/// The options for sampling the native stacks of a process.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProgramOptions {
    /// The maximum number of frames of a stack, counted from the leaf; `None`: all.
    pub depth: Option<u32>,
    /// Which threads are sampled: all, or those on a CPU. Other modes are those of interpreters.
    pub threads: SampledThreads,
    /// The CPU time from one sample of a thread to the next, if the system may take the samples by itself (perf events), which stops
    /// no thread. It does so of threads on a CPU only, and where it is allowed. `None`: threads are stopped.
    pub events: Option<Duration>,
}

struct ProgramLane {
    thread: i32,
    state: Option<ThreadState>,
    was_on_cpu: bool,
    rest: RestWatch,
}

impl ProgramLane {
    fn new(process: i32, thread: i32) -> Self {
        Self {
            thread,
            state: ThreadState::of(process, thread),
            was_on_cpu: false,
            rest: RestWatch::of(process, thread),
        }
    }
}

/// The samples that the system takes.
enum SystemSamples {
    CpuTime(ProgramEvents),
    Waits(ProgramWaits),
}

/// A process that runs any program.
pub struct ProgramProcess {
    process: Process,
    options: ProgramOptions,
    native: NativeSampler,
    lanes: Vec<ProgramLane>,
    /// The samples of the system; else why it takes none.
    events: Result<SystemSamples, String>,
    pause: u32,
    names: HashMap<u64, Vec<u8>>,
    /// For comparing stacks.
    buffer: Vec<u8>,
}

impl ProgramProcess {
    /// Attaches to the process of this number.
    ///
    /// # Errors
    /// If the process does not exist or may not be read. The error says which.
    pub fn attach(id: i32, options: &ProgramOptions) -> Result<Self, Error> {
        let process = Process::open(id)?;
        if matches!(options.threads, SampledThreads::HoldingGil | SampledThreads::InException) {
            let mode = options.threads.mode();
            let what = format!("unsupported mode {mode}: expected an interpreter, or the mode wall or cpu");
            return Err(Error::Unsupported(what));
        }
        let settings = NativeSettings {
            frames: NativeFrames::Anytime,
            depth: options.depth,
            ..NativeSettings::default()
        };
        let native = NativeSampler::new(settings);
        let mut attached = Self {
            process,
            options: *options,
            native,
            lanes: Vec::new(),
            events: Err(String::new()),
            pause: RELIST_PAUSE,
            names: HashMap::new(),
            buffer: Vec::new(),
        };
        attached.events = attached.open_events();
        if options.threads == SampledThreads::OffCpu
            && let Err(reason) = &attached.events
        {
            return Err(Error::Unsupported(format!("unsupported mode off-cpu: {reason}")));
        }
        attached.list_threads()?;
        Ok(attached)
    }

    /// The samples of the system; else why it takes none.
    fn open_events(&self) -> Result<SystemSamples, String> {
        if !matches!(self.options.threads, SampledThreads::OnCpu | SampledThreads::OffCpu) {
            return Err("threads that wait are sampled too".to_owned());
        }
        let period_ns = self.options.events.map(nanoseconds).filter(|&period_ns| period_ns > 0);
        let period_ns = period_ns.ok_or("samples have no period")?;
        let opened = match self.options.threads {
            SampledThreads::OffCpu => ProgramWaits::open(&self.process, period_ns).map(SystemSamples::Waits),
            _ => ProgramEvents::open(&self.process, period_ns).map(SystemSamples::CpuTime),
        };
        opened.map_err(|error| error.to_string())
    }

    /// The path of the program, as the process sees it.
    #[must_use]
    pub fn program(&self) -> &[u8] {
        let first = self.process.mappings().iter().find(|mapping| mapping.shows_file());
        first.map(|mapping| mapping.path.as_slice()).unwrap_or_default()
    }

    fn list_threads(&mut self) -> Result<(), Error> {
        if self.events.is_ok() {
            return Ok(());
        }
        let threads = self.process.threads()?;
        let mut known: HashMap<i32, ProgramLane> =
            self.lanes.drain(..).map(|lane| (lane.thread, lane)).collect();
        let id = self.process.id();
        self.lanes.extend(
            threads
                .into_iter()
                .map(|thread| known.remove(&thread).unwrap_or_else(|| ProgramLane::new(id, thread))),
        );
        Ok(())
    }
}

impl Subject for ProgramProcess {
    fn process(&self) -> i32 {
        self.process.id()
    }

    fn stopper(&self) -> Stopper {
        self.process.stopper()
    }

    fn prepare(&mut self) -> Result<(), Error> {
        self.pause = self.pause.saturating_sub(1);
        if self.pause == 0 {
            self.pause = RELIST_PAUSE;
            self.list_threads()?;
        }
        Ok(())
    }

    fn lanes(&self) -> usize {
        self.lanes.len()
    }

    fn taken(&mut self, tables: &mut Tables) -> Result<Vec<TakenSample>, Error> {
        match &mut self.events {
            Ok(SystemSamples::CpuTime(events)) => events.take(&mut self.process, &mut self.native, tables),
            Ok(SystemSamples::Waits(waits)) => waits.take(&mut self.process, &mut self.native, tables),
            Err(_) => Ok(Vec::new()),
        }
    }

    fn thread(&self, lane: usize) -> Option<u64> {
        self.lanes.get(lane)?.thread.try_into().ok()
    }

    fn thread_to_stop(&self, lane: usize) -> Option<i32> {
        self.lanes.get(lane).map(|lane| lane.thread)
    }

    fn needs_stop(&self) -> bool {
        true
    }

    fn max_retries(&self) -> u32 {
        0
    }

    /// Knows without a stop only that a thread is not to be sampled, or sleeps where it was stopped. Nothing can be seen of one that
    /// runs.
    fn look(&mut self, lane: usize, _tables: &mut Tables) -> Result<Look, Error> {
        let Some(lane) = self.lanes.get(lane) else { return Ok(Look::Idle) };
        let is_left_out = self.options.threads == SampledThreads::OnCpu && !lane.was_on_cpu;
        Ok(if is_left_out { Look::Idle } else { lane.rest.look().unwrap_or(Look::Torn) })
    }

    fn will_stop(&mut self, lane: usize) -> bool {
        let Some(lane) = self.lanes.get_mut(lane) else { return false };
        // If the system does not say it, the thread may run.
        lane.was_on_cpu = lane.state.as_ref().is_none_or(|state| state.is_on_cpu() == Some(true));
        let rests = lane.rest.rests(&self.process, &mut self.buffer);
        !rests && (self.options.threads != SampledThreads::OnCpu || lane.was_on_cpu)
    }

    fn look_stopped(
        &mut self,
        lane: usize,
        registers: Option<Registers>,
        _tables: &mut Tables,
    ) -> Result<Look, Error> {
        self.native.unwind(&self.process, registers)?;
        if let Some(lane) = self.lanes.get_mut(lane) {
            lane.rest.note_stop(registers, self.native.print());
        }
        Ok(Look::Idle)
    }

    fn look_released(&mut self, lane: usize, look: Look, tables: &mut Tables) -> Result<Look, Error> {
        let look = self.native.complete(&mut self.process, look, &[], tables)?;
        if let Some(lane) = self.lanes.get_mut(lane) {
            lane.rest.note_look(look);
        }
        Ok(look)
    }

    fn status(&self, lane: usize) -> Option<Status> {
        self.lanes.get(lane).map(|lane| plain_status(lane.was_on_cpu, lane.thread == self.process.id()))
    }

    fn named(
        &mut self,
        stack: StackId,
        patience: Patience,
        tables: &mut Tables,
    ) -> Result<Option<StackId>, Error> {
        self.native.named(stack, patience, tables)
    }

    fn native_modules(&self) -> Vec<String> {
        self.native.modules()
    }

    fn take_native_counts(&mut self) -> NativeCounts {
        self.native.take_counts()
    }

    fn new_thread_names(&mut self) -> Vec<(u64, Vec<u8>)> {
        let listed = self.events.as_ref().ok().and_then(|_| self.process.threads().ok());
        let numbers = self.lanes.iter().map(|lane| lane.thread).chain(listed.unwrap_or_default());
        thread_files::new_names(self.process.id(), numbers, &mut self.names)
    }

    fn forget(&mut self) {
        for lane in &mut self.lanes {
            lane.rest.forget();
        }
        self.native.forget();
        if let Ok(SystemSamples::Waits(waits)) = &mut self.events {
            waits.forget();
        }
    }

    fn refresh(&mut self) -> Result<(), Error> {
        if !self.process.runs_same_program() {
            let what = format!("process {} has ended or replaced its program", self.process.id());
            return Err(borehole_process::Error::new(ErrorKind::Gone, what).into());
        }
        self.list_threads()
    }

    fn facts(&self) -> Vec<(String, String)> {
        let program = String::from_utf8_lossy(self.program()).into_owned();
        let (sampler, reason) = match &self.events {
            Ok(SystemSamples::CpuTime(events)) => (events.said(), None),
            Ok(SystemSamples::Waits(_)) => ("perf events, of time off the CPU", None),
            Err(reason) => ("stops of threads", Some(reason.clone())),
        };
        let facts = [("program", program), ("mode", self.options.threads.mode().to_owned())];
        let sampler = [("native.sampler", sampler.to_owned())];
        let reason = reason.map(|reason| ("native.no_perf_events", reason));
        facts.into_iter().chain(sampler).chain(reason).map(|(key, value)| (key.to_owned(), value)).collect()
    }
}
