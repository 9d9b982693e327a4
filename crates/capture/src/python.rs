//! A process that runs CPython, as a subject to sample.

use std::collections::HashMap;

use borehole_model::{LabelsId, StackId, Status, Tables};
use borehole_native::CallPlace;
use borehole_process::{ErrorKind, Process, Registers, Stopper};
use borehole_python::{
    LocalVariable, OpcodeNames, Python, PythonIdentity, PythonSample, PythonThread, SampleOutcome,
    SampledTasks, StackWalker, Stillness, TaskNames, ThreadList, ThreadNames, ThreadStatus, WalkOptions,
};

use crate::environment::EnvironmentLabels;
use crate::error::Error;
use crate::native::{NativeFrames, NativeSampler, NativeSettings, ScriptCall};
use crate::native_counts::NativeCounts;
use crate::ready::when_ready;
use crate::resting::{RestWatch, SleepWatch};
use crate::schedule::now_ns;
use crate::subject::{Look, Patience, Subject};
use crate::thread_files::{self, ThreadNumbers, ThreadState};

/// The options for attaching to CPython and walking its stacks.
#[derive(Clone, Debug, Default)]
pub struct PythonOptions {
    /// The maximum number of frames of a stack, counted from the leaf; `None`: all.
    pub depth: Option<u32>,
    /// Which threads are sampled.
    pub threads: SampledThreads,
    /// Whether stacks contain native frames. Refused together with tasks.
    pub native: NativeFrames,
    /// The tasks of asyncio that are shown.
    pub tasks: SampledTasks,
    /// Which names of tasks are shown.
    pub task_names: TaskNames,
    /// How instructions are named; `None`: frames have none.
    pub opcodes: Option<OpcodeNames>,
    /// The variables of the environment that become labels of samples.
    pub environment: Vec<String>,
}

impl PythonOptions {
    fn walk(&self) -> WalkOptions {
        // Joined stacks are cut when they are complete.
        let depth = self.depth.filter(|_| !self.native.is_any());
        let Self { tasks, task_names, opcodes, .. } = *self;
        WalkOptions { depth, tasks, task_names, opcodes }
    }

    /// Refuses what `python` does not tell, and native frames in the stacks of tasks: the calls of the interpreter are those of
    /// the thread's own stack.
    fn check(&self, python: &Python) -> Result<(), Error> {
        let refusal = if self.native.is_any() && self.tasks != SampledTasks::None {
            "unsupported options: native frames are not joined to the stacks of asyncio's tasks: \
             expected native frames or tasks, found both"
                .to_owned()
        } else if self.threads == SampledThreads::OffCpu {
            "unsupported mode off-cpu: expected a program other than Python, or the mode wall or cpu"
                .to_owned()
        } else if self.threads == SampledThreads::HoldingGil && !python.has_gil() {
            format!("unsupported mode gil: {} has no global lock: expected another mode", python.identity())
        } else if self.threads == SampledThreads::InException && !python.tells_exceptions() {
            let identity = python.identity();
            format!(
                "unsupported mode exception: {identity} does not tell where exceptions are: expected another mode"
            )
        } else {
            return Ok(());
        };
        Err(Error::Unsupported(refusal))
    }
}

/// The threads that are sampled at a point in time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SampledThreads {
    /// All threads, whether they run or wait.
    #[default]
    All,
    /// Threads that run on a CPU, or wait for one only.
    OnCpu,
    /// Threads that are not on a CPU: of programs only, where the system says when threads leave and return.
    OffCpu,
    /// The threads that hold the global lock of their interpreter.
    HoldingGil,
    /// Threads that raise or handle an exception.
    InException,
}

impl SampledThreads {
    /// The name of the mode in CPython's profiler.
    pub(crate) const fn mode(self) -> &'static str {
        match self {
            Self::All => "wall",
            Self::OnCpu => "cpu",
            Self::OffCpu => "off-cpu",
            Self::HoldingGil => "gil",
            Self::InException => "exception",
        }
    }

    fn includes(self, status: ThreadStatus, is_on_cpu: bool) -> bool {
        match self {
            Self::All => true,
            Self::OnCpu => is_on_cpu,
            Self::OffCpu => !is_on_cpu,
            Self::HoldingGil => status.holds_gil == Some(true),
            Self::InException => status.has_exception == Some(true),
        }
    }
}

/// The bits of [`Status`], in the order of its names.
const HAS_GIL: u8 = 1;
const ON_CPU: u8 = 2;
const UNKNOWN: u8 = 4;
const GIL_REQUESTED: u8 = 8;
const HAS_EXCEPTION: u8 = 16;
const MAIN_THREAD: u8 = 32;

/// How long a new thread may go unseen: looking for one takes a read of its own.
const LOOK_PAUSE_NS: u64 = 2_000_000;

/// How long no new threads are listed after some were: a program that starts a thousand threads a second would otherwise be
/// listed all the time.
const LIST_PAUSE_NS: u64 = 8_000_000;

/// The most threads that are not read again while they sleep: each takes one more open file.
const MOST_WATCHED: usize = 256;

/// The state of a thread of which nothing is known but these.
pub(crate) const fn plain_status(is_on_cpu: bool, is_main: bool) -> Status {
    Status((if is_on_cpu { ON_CPU } else { 0 }) | (if is_main { MAIN_THREAD } else { 0 }))
}

/// A thread that is sampled.
struct PythonLane {
    thread: PythonThread,
    /// Its number on this machine; `None` if that is not known.
    number: Option<i32>,
    state: Option<ThreadState>,
    status: Status,
    has_ended: bool,
    /// Whether it ran on a CPU before it was stopped; `None` if it has ended or its state is not known.
    was_on_cpu: Option<bool>,
    /// Only if native frames are wanted.
    rest: Option<RestWatch>,
    sleep: SleepWatch,
}

/// A process that runs CPython.
pub struct PythonProcess {
    process: Process,
    python: Python,
    walker: StackWalker,
    options: PythonOptions,
    numbers: ThreadNumbers,
    list: ThreadList,
    lanes: Vec<PythonLane>,
    /// The time from which the list is compared with the process again.
    next_look_ns: u64,
    names: HashMap<u64, Vec<u8>>,
    native: Option<NativeSampler>,
    calls: Vec<ScriptCall>,
    /// For comparing stacks.
    buffer: Vec<u8>,
    thread_names: ThreadNames,
    environment: EnvironmentLabels,
    /// Whether the tasks of this point in time are still to be read.
    is_scan_due: bool,
    /// Whether it is not known yet where the tasks are.
    misses_tasks: bool,
    cut_tasks: u64,
}

impl PythonProcess {
    /// Attaches to the process of this number.
    ///
    /// # Errors
    /// If the process does not exist, may not be read, or does not run a supported CPython. The error says which.
    pub fn attach(id: i32, options: &PythonOptions) -> Result<Self, Error> {
        let process = Process::open(id)?;
        let python = Python::attach(&process)?;
        options.check(&python)?;
        let settings = NativeSettings {
            frames: options.native,
            depth: options.depth,
            engine: python.engine(),
            hosts_made_code: false,
        };
        let native = NativeSampler::if_wanted(settings);
        let walker = StackWalker::new(&python, options.walk());
        let mut attached = Self {
            environment: EnvironmentLabels::of(id, &options.environment),
            numbers: ThreadNumbers::of(id),
            process,
            python,
            walker,
            options: options.clone(),
            list: ThreadList::default(),
            lanes: Vec::new(),
            next_look_ns: 0,
            names: HashMap::new(),
            native,
            calls: Vec::new(),
            buffer: Vec::new(),
            thread_names: ThreadNames::default(),
            is_scan_due: true,
            misses_tasks: false,
            cut_tasks: 0,
        };
        attached.list_threads()?;
        attached.find_tasks()?;
        Ok(attached)
    }

    /// Like [`attach`](Self::attach), for a process that may have just been started: retries for half a second.
    ///
    /// # Errors
    /// As [`attach`](Self::attach).
    pub fn attach_when_ready(id: i32, options: &PythonOptions) -> Result<Self, Error> {
        when_ready(|| Self::attach(id, options))
    }

    /// The identity of the CPython in the process.
    #[must_use]
    pub fn identity(&self) -> PythonIdentity {
        self.python.identity()
    }

    fn list_threads(&mut self) -> Result<(), Error> {
        self.list = self.python.threads(&self.process)?;
        self.numbers.refresh(self.process.id());
        let mut known: HashMap<u64, PythonLane> = self
            .lanes
            .drain(..)
            .filter(|lane| !lane.has_ended)
            .filter_map(|lane| Some((lane.thread.system_id?, lane)))
            .collect();
        self.walker.retain(&self.list.threads);
        // The newest thread is the first of the list.
        for &thread in self.list.threads.iter().rev() {
            let same = thread.system_id.and_then(|id| known.remove(&id)).filter(|lane| lane.thread == thread);
            let lane = same.unwrap_or_else(|| {
                let mut lane = PythonLane::new(self.process.id(), thread, &self.numbers);
                self.watch_sleep(&mut lane);
                lane
            });
            self.lanes.push(lane);
        }
        Ok(())
    }

    fn watch_sleep(&self, lane: &mut PythonLane) {
        let (Some(number), process) = (lane.number, self.process.id()) else { return };
        if self.native.is_some() {
            lane.rest = Some(RestWatch::of(process, number));
            return;
        }
        let is_exact = lane.state.as_ref().is_some_and(ThreadState::is_exact);
        // Other threads may change what a task waits for.
        if is_exact && self.options.tasks == SampledTasks::None && self.lanes.len() < MOST_WATCHED {
            lane.sleep = SleepWatch::of(process, number);
        }
    }

    /// The features of the recording, as CPython's profiler names them.
    fn features(&self) -> String {
        let has_gc = self.python.tells_collections().then_some(",gc");
        let has_opcodes = self.options.opcodes.map(|_| ",opcodes");
        ["all_threads"].into_iter().chain(has_gc).chain(has_opcodes).collect()
    }

    fn find_tasks(&mut self) -> Result<(), Error> {
        self.misses_tasks = self.walker.find_tasks(&self.process)?;
        Ok(())
    }

    /// Reads the tasks, once for each point in time.
    fn scan_tasks(&mut self, tables: &mut Tables) -> Result<(), Error> {
        if std::mem::take(&mut self.is_scan_due) {
            let is_cut = self.walker.scan_tasks(&self.process, &self.list.threads, tables)?;
            self.cut_tasks += u64::from(is_cut);
        }
        Ok(())
    }

    /// Looks at a thread that runs on, unless it has slept since the last look.
    fn sample_running(&mut self, lane: usize, tables: &mut Tables) -> Result<Look, Error> {
        let Some(sleep) = self.lanes.get(lane).map(|lane| &lane.sleep) else { return Ok(Look::Idle) };
        if let Some(look) = sleep.look() {
            return Ok(look);
        }
        let turns = sleep.turns();
        let look = self.sample(lane, Stillness::Running, tables)?;
        let lane = &mut self.lanes[lane];
        let is_off_cpu = lane.status.0 & (ON_CPU | UNKNOWN) == 0;
        lane.sleep.note(turns, is_off_cpu, look);
        Ok(look)
    }

    fn sample(&mut self, lane: usize, stillness: Stillness, tables: &mut Tables) -> Result<Look, Error> {
        self.scan_tasks(tables)?;
        let Self { process, walker, options, lanes, .. } = self;
        let Some(lane) = lanes.get_mut(lane) else { return Ok(Look::Idle) };
        let is_on_cpu = match stillness {
            Stillness::Still => lane.was_on_cpu,
            Stillness::Running => lane.is_on_cpu(),
        };
        if lane.has_ended {
            return Ok(Look::Ended);
        }
        // If the system does not say it, the thread may run.
        let is_running = is_on_cpu.unwrap_or(true);
        if options.threads == SampledThreads::OnCpu && !is_running {
            lane.status = plain_status(false, lane.number == Some(process.id()));
            return Ok(Look::Idle);
        }
        let PythonSample { outcome, status } = walker.sample(process, &lane.thread, stillness, tables)?;
        lane.status = lane.status_of(status, is_on_cpu, process.id());
        Ok(match outcome {
            SampleOutcome::Stack { .. } if !options.threads.includes(status, is_running) => Look::Idle,
            SampleOutcome::Stack { id: stack, omitted } => Look::Stack { stack, omitted },
            SampleOutcome::Idle => Look::Idle,
            SampleOutcome::Torn => Look::Torn,
            SampleOutcome::Ended => {
                lane.has_ended = true;
                self.next_look_ns = 0;
                Look::Ended
            }
        })
    }
}

impl PythonLane {
    fn new(process: i32, thread: PythonThread, numbers: &ThreadNumbers) -> Self {
        let number = thread.system_id.and_then(|id| numbers.ours(id));
        let state = number.and_then(|number| ThreadState::of(process, number));
        let status = Status::default();
        Self {
            thread,
            number,
            state,
            status,
            has_ended: false,
            was_on_cpu: None,
            rest: None,
            sleep: SleepWatch::default(),
        }
    }

    /// Whether it runs on a CPU; `None` if that is not known. Notes its end.
    fn is_on_cpu(&mut self) -> Option<bool> {
        let is_on_cpu = self.state.as_ref().map(ThreadState::is_on_cpu);
        self.has_ended |= is_on_cpu == Some(None);
        is_on_cpu.flatten()
    }

    fn status_of(&self, status: ThreadStatus, is_on_cpu: Option<bool>, process: i32) -> Status {
        let bit = |is_set: Option<bool>, bit| if is_set == Some(true) { bit } else { 0 };
        Status(
            bit(status.holds_gil, HAS_GIL)
                | bit(is_on_cpu, ON_CPU)
                | bit(Some(is_on_cpu.is_none()), UNKNOWN)
                | bit(status.requests_gil, GIL_REQUESTED)
                | bit(status.has_exception, HAS_EXCEPTION)
                | bit(Some(self.number == Some(process)), MAIN_THREAD),
        )
    }
}

impl Subject for PythonProcess {
    fn process(&self) -> i32 {
        self.process.id()
    }

    fn stopper(&self) -> Stopper {
        self.process.stopper()
    }

    fn prepare(&mut self) -> Result<(), Error> {
        self.is_scan_due = true;
        let now_ns = now_ns();
        if now_ns < self.next_look_ns {
            return Ok(());
        }
        self.next_look_ns = now_ns + LOOK_PAUSE_NS;
        if self.python.has_other_threads(&self.process, &self.list)? {
            self.next_look_ns = now_ns + LIST_PAUSE_NS;
            // The list may have changed while it was read: it is read again next time.
            match self.list_threads() {
                Err(error) if !error.is_gone() => {}
                listed => return listed,
            }
        }
        Ok(())
    }

    fn lanes(&self) -> usize {
        self.lanes.len()
    }

    fn thread(&self, lane: usize) -> Option<u64> {
        self.lanes.get(lane)?.number?.try_into().ok()
    }

    fn interpreter(&self, lane: usize) -> Option<u64> {
        self.lanes.get(lane).map(|lane| lane.thread.interpreter)
    }

    fn thread_to_stop(&self, lane: usize) -> Option<i32> {
        self.lanes.get(lane)?.number
    }

    fn max_retries(&self) -> u32 {
        1
    }

    fn has_oracle(&self) -> bool {
        true
    }

    fn look(&mut self, lane: usize, tables: &mut Tables) -> Result<Look, Error> {
        let rest = self.lanes.get(lane).and_then(|lane| lane.rest.as_ref());
        if let Some(look) = rest.and_then(RestWatch::look) {
            return Ok(look);
        }
        self.sample_running(lane, tables)
    }

    fn will_stop(&mut self, lane: usize) -> bool {
        let Some(lane) = self.lanes.get_mut(lane) else { return false };
        lane.was_on_cpu = lane.is_on_cpu();
        let is_left_out = self.options.threads == SampledThreads::OnCpu && lane.was_on_cpu == Some(false);
        match &mut lane.rest {
            Some(rest) => !rest.rests(&self.process, &mut self.buffer) && !is_left_out,
            None => lane.was_on_cpu == Some(true),
        }
    }

    fn look_stopped(
        &mut self,
        lane: usize,
        registers: Option<Registers>,
        tables: &mut Tables,
    ) -> Result<Look, Error> {
        let look = self.sample(lane, Stillness::Still, tables)?;
        if let Some(native) = &mut self.native {
            native.unwind(&self.process, registers)?;
            if let Some(rest) = self.lanes.get_mut(lane).and_then(|lane| lane.rest.as_mut()) {
                rest.note_stop(registers, native.print());
            }
        }
        Ok(look)
    }

    fn look_released(&mut self, lane: usize, look: Look, tables: &mut Tables) -> Result<Look, Error> {
        let Some(native) = &mut self.native else { return Ok(look) };
        self.calls.clear();
        self.calls.extend(self.walker.calls().iter().map(|call| ScriptCall {
            below: call.below,
            place: call.place.map_or(CallPlace::NextEntry, CallPlace::OnStack),
        }));
        let look = native.complete(&mut self.process, look, &self.calls, tables)?;
        if let Some(rest) = self.lanes.get_mut(lane).and_then(|lane| lane.rest.as_mut()) {
            rest.note_look(look);
        }
        Ok(look)
    }

    fn needs_stop(&self) -> bool {
        self.native.is_some()
    }

    fn named(
        &mut self,
        stack: StackId,
        patience: Patience,
        tables: &mut Tables,
    ) -> Result<Option<StackId>, Error> {
        match &mut self.native {
            Some(native) => native.named(stack, patience, tables),
            None => Ok(Some(stack)),
        }
    }

    fn native_modules(&self) -> Vec<String> {
        self.native.as_ref().map(NativeSampler::modules).unwrap_or_default()
    }

    fn take_native_counts(&mut self) -> NativeCounts {
        self.native.as_mut().map(NativeSampler::take_counts).unwrap_or_default()
    }

    fn waiting_tasks(&mut self, lane: usize, tables: &mut Tables) -> Result<Vec<StackId>, Error> {
        // A task that waits is on no CPU and holds no lock.
        let is_wanted = self.options.threads == SampledThreads::All;
        let Some(lane) = self.lanes.get(lane).filter(|_| is_wanted) else { return Ok(Vec::new()) };
        Ok(self.walker.suspended(&self.process, &lane.thread, tables)?)
    }

    fn take_cut_tasks(&mut self) -> u64 {
        std::mem::take(&mut self.cut_tasks)
    }

    fn locals(&mut self, _lane: usize) -> Result<Vec<Vec<LocalVariable>>, Error> {
        Ok(self.walker.locals(&self.process)?)
    }

    fn labels(&mut self, _lane: usize, tables: &mut Tables) -> Result<Option<LabelsId>, Error> {
        Ok(self.environment.alone(tables).map_err(borehole_python::Error::from)?)
    }

    fn status(&self, lane: usize) -> Option<Status> {
        self.lanes.get(lane).map(|lane| lane.status)
    }

    fn is_comparable(&self, lane: usize) -> bool {
        self.lanes.get(lane).is_some_and(|lane| lane.status.0 & ON_CPU != 0)
    }

    fn new_thread_names(&mut self) -> Vec<(u64, Vec<u8>)> {
        // Names that cannot be read now are those of the kernel.
        let named = self.thread_names.read(&self.python, &self.process, &self.list).unwrap_or_default();
        let named: HashMap<Option<u64>, Vec<u8>> =
            named.into_iter().map(|(thread, name)| (thread.system_id, name)).collect();
        let all = self.lanes.iter().filter_map(|lane| {
            let number = lane.number?;
            let name = named.get(&lane.thread.system_id).cloned();
            let name = name.or_else(|| thread_files::name(self.process.id(), number))?;
            Some((u64::try_from(number).ok()?, name))
        });
        let all: HashMap<u64, Vec<u8>> = all.collect();
        let is_new = |(number, name): &(&u64, &Vec<u8>)| self.names.get(*number) != Some(*name);
        let mut new: Vec<_> =
            all.iter().filter(is_new).map(|(&number, name)| (number, name.clone())).collect();
        new.sort_unstable();
        self.names = all;
        new
    }

    fn forget(&mut self) {
        self.walker = StackWalker::new(&self.python, self.options.walk());
        if let Some(native) = &mut self.native {
            native.forget();
        }
        for lane in &mut self.lanes {
            lane.rest.as_mut().map(RestWatch::forget);
            lane.sleep.forget();
        }
        self.environment.forget();
        // It is found again twice a second, if not now.
        self.misses_tasks = self.walker.find_tasks(&self.process).unwrap_or(true);
    }

    fn refresh(&mut self) -> Result<(), Error> {
        if !self.process.runs_same_program() {
            let what = format!("process {} has ended or replaced its program", self.process.id());
            return Err(borehole_process::Error::new(ErrorKind::Gone, what).into());
        }
        if self.misses_tasks {
            self.process.refresh()?;
            self.find_tasks()?;
        }
        match self.list_threads() {
            Err(error) if !error.is_gone() => Ok(()),
            listed => listed,
        }
    }

    fn facts(&self) -> Vec<(String, String)> {
        let identity = self.python.identity();
        let facts = [
            ("python", identity.to_string()),
            ("python_version", identity.version.to_string()),
            ("mode", self.options.threads.mode().to_owned()),
            ("features", self.features()),
        ];
        facts.map(|(key, value)| (key.to_owned(), value)).into()
    }
}
