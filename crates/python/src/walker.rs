//! Samples the stacks of one process.

use std::borrow::Cow;

use borehole_model::{FrameId, StackId, Tables};
use borehole_process::{ForeignMemory, MemoryPiece, mapped, moved, u32_at, u64_at};
use hashbrown::{HashMap, HashSet};

use crate::attach::Python;
use crate::chain::{CallEnd, End, FrameChain, RawFrame, RawPosition};
use crate::codes::{CodeId, Codes};
use crate::error::Error;
use crate::layout::{CurrentFrame, GilPlace, Layout};
use crate::locals::{self, LocalVariable};
use crate::release::PythonVersion;
use crate::snapshot::{Extra, Snapshot, Taken, read_all};
use crate::status::ThreadStatus;
use crate::tasks::{TaskIndex, TaskNames};
use crate::threads::PythonThread;

/// The number of times a sample is restarted because it needed memory that had not been copied. The next round copies it.
const ROUNDS: usize = 4;

/// The most places on the C stack that are remembered of a thread, each of an entry into the interpreter.
const MOST_ENTRIES: usize = 4;

/// The number of threads whose memory is remembered.
const MOST_LANES: usize = 1 << 14;

/// Options of walking stacks.
#[derive(Clone, Copy, Debug, Default)]
pub struct WalkOptions {
    /// The maximum number of frames kept of a stack, counted from the leaf; `None`: all.
    pub depth: Option<u32>,
    /// The tasks of asyncio that are shown.
    pub tasks: SampledTasks,
    /// Which names of tasks are shown.
    pub task_names: TaskNames,
    /// How instructions are named; `None`: frames have none. Those of 3.11 and 3.12 never have, nor have tasks that wait.
    pub opcodes: Option<OpcodeNames>,
}

/// Names the instruction that has a number in a release.
pub type OpcodeNames = fn(PythonVersion, u8) -> Cow<'static, str>;

/// Where a frame is in its code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Instruction {
    /// In bytes.
    pub(crate) offset: i64,
    /// Its number; `None` if it is not asked for, or cannot be read.
    pub(crate) opcode: Option<u8>,
}

/// The tasks of asyncio that are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SampledTasks {
    /// None: stacks are those of threads.
    #[default]
    None,
    /// The stack of a running task is joined to those of the tasks that await it.
    Running,
    /// The tasks that wait too; see [`StackWalker::suspended`].
    All,
}

/// Whether the thread runs while it is sampled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stillness {
    /// It runs: a stack counts only if it did not change during the copy.
    Running,
    /// It is stopped, or memory cannot change.
    Still,
}

/// A sample of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PythonSample {
    /// The stack, or why there is none.
    pub outcome: SampleOutcome,
    /// The state of the thread.
    pub status: ThreadStatus,
}

/// A call of the interpreter by C, which runs one or more frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PythonCall {
    /// The stack below the frames that it runs.
    pub below: Option<StackId>,
    /// The address of one of its variables on the C stack, from 3.12 on. `None`: each frame of the interpreter's function is one
    /// call.
    pub place: Option<u64>,
}

/// The result of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SampleOutcome {
    /// A stack that existed.
    Stack {
        /// The stack in the walker's tables.
        id: StackId,
        /// The number of frames omitted at the root, because there are more than requested.
        omitted: u64,
    },
    /// The thread executes no Python code.
    Idle,
    /// The stack changed during the read, or its memory is invalid. An immediate retry is cheap.
    Torn,
    /// The thread has ended: its state is no more.
    Ended,
}

/// A frame of the stack sampled last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct KnownFrame {
    code: CodeId,
    at: Instruction,
    stack: StackId,
}

#[derive(Debug)]
struct Lane {
    snapshot: Snapshot,
    /// The state of the lock, and that of the collector of garbage, if it is told; before 3.13, the places on the C stack that
    /// point to the current frame.
    extras: Vec<Extra>,
    /// The stack sampled last, the root first.
    known: Vec<KnownFrame>,
    /// The stack below it.
    base: Option<StackId>,
    generation: u64,
}

/// Samples the stacks of one process. Remembers the process's code and the location of its stacks.
#[derive(Debug)]
pub struct StackWalker {
    pub(crate) python: Python,
    pub(crate) options: WalkOptions,
    depth: usize,
    pub(crate) codes: Codes,
    /// By the address of the thread's state.
    lanes: HashMap<u64, Lane>,
    pub(crate) chain: FrameChain,
    resolved: Vec<(CodeId, Instruction)>,
    pub(crate) tasks: Option<TaskIndex>,
    /// The ends of the calls of the interpreter among the resolved frames.
    call_ends: Vec<CallEnd>,
    calls: Vec<PythonCall>,
}

impl StackWalker {
    /// Creates a walker without any knowledge of the process of `python`.
    #[must_use]
    pub fn new(python: &Python, options: WalkOptions) -> Self {
        let depth = options.depth.map_or(usize::MAX, |depth| usize::try_from(depth).unwrap_or(usize::MAX));
        Self {
            python: python.clone(),
            options,
            depth,
            codes: Codes::default(),
            lanes: HashMap::new(),
            chain: FrameChain::default(),
            resolved: Vec::new(),
            tasks: None,
            call_ends: Vec::new(),
            calls: Vec::new(),
        }
    }

    /// The calls of the interpreter in the stack sampled last, the leaf's first. Empty if not all of its frames were kept.
    #[must_use]
    pub fn calls(&self) -> &[PythonCall] {
        &self.calls
    }

    /// Forgets what is remembered of threads that are not among these.
    pub fn retain(&mut self, threads: &[PythonThread]) {
        let states: HashSet<u64> = threads.iter().map(|thread| thread.state).collect();
        self.lanes.retain(|state, _| states.contains(state));
    }

    /// The current stack of `thread`, with its frames in `tables`. Pass the same tables for all samples of this walker.
    ///
    /// # Errors
    /// If the process is gone or may no longer be read, or the tables are full. Invalid memory is not an error but
    /// [`SampleOutcome::Torn`].
    pub fn sample(
        &mut self,
        memory: &impl ForeignMemory,
        thread: &PythonThread,
        stillness: Stillness,
        tables: &mut Tables,
    ) -> Result<PythonSample, Error> {
        if self.lanes.len() > MOST_LANES {
            self.lanes.clear();
        }
        self.codes.begin();
        let lane = self.lanes.remove(&thread.state);
        let mut lane = lane.unwrap_or_else(|| Lane::new(&self.python.layout, thread));
        let outcome = self.sample_lane(memory, thread, stillness, &mut lane, tables);
        lane.snapshot.learn();
        let status = self.status(thread, &lane);
        if !matches!(outcome, Ok(SampleOutcome::Ended)) {
            self.lanes.insert(thread.state, lane);
        }
        outcome.map(|outcome| PythonSample { outcome, status })
    }

    fn sample_lane(
        &mut self,
        memory: &impl ForeignMemory,
        thread: &PythonThread,
        stillness: Stillness,
        lane: &mut Lane,
        tables: &mut Tables,
    ) -> Result<SampleOutcome, Error> {
        for _ in 0..ROUNDS {
            lane.snapshot.learn();
            match lane.snapshot.take(memory, &mut lane.extras)? {
                Taken::Whole => {}
                Taken::Partly => continue,
                // A place on the C stack may be unmapped, or the thread has ended.
                Taken::NoState if lane.extras.len() > 1 => {
                    lane.extras.truncate(1);
                    continue;
                }
                Taken::NoState => return Ok(SampleOutcome::Ended),
            }
            if !is_state_of(&self.python.layout, lane.snapshot.state(), thread) {
                return Ok(SampleOutcome::Ended);
            }
            let Some(current) = self.current_frame(lane) else { continue };
            if current == 0 {
                return Ok(SampleOutcome::Idle);
            }
            let end = self.chain.follow(memory, &self.python.layout, &mut lane.snapshot, current)?;
            if stillness == Stillness::Running && !lane.snapshot.is_whole() {
                continue;
            }
            if end == End::Broken {
                return Ok(SampleOutcome::Torn);
            }
            let base = self.join(memory, thread, tables)?;
            let collecting = collecting_frame(&self.python.layout, thread, lane);
            if !self.resolve(memory, collecting, tables)? {
                return Ok(SampleOutcome::Torn);
            }
            return self.intern(lane, base, tables);
        }
        Ok(SampleOutcome::Torn)
    }

    /// The address of the current frame; `None` if it is to be read at a place that is not among the extras yet.
    fn current_frame(&self, lane: &mut Lane) -> Option<u64> {
        let state = lane.snapshot.state();
        match self.python.layout.thread.current {
            CurrentFrame::Direct(offset) => u64_at(state, offset),
            CurrentFrame::OnCStack { cframe, current_frame } => {
                let place = u64_at(state, cframe)?;
                if place == 0 {
                    return Some(0);
                }
                let known = lane.extras[1..].iter().position(|extra| extra.address == place);
                let Some(at) = known else {
                    lane.extras.truncate(MOST_ENTRIES);
                    lane.extras.insert(1, Extra::at(place));
                    return None;
                };
                u64_at(&lane.extras[at + 1].bytes, current_frame)
            }
        }
    }

    /// Finds the code of each frame of the chain; `false` if one has none. The frame at `collecting` has called the collector of
    /// garbage.
    fn resolve(
        &mut self,
        memory: &impl ForeignMemory,
        collecting: Option<u64>,
        tables: &mut Tables,
    ) -> Result<bool, Error> {
        self.resolved.clear();
        self.call_ends.clear();
        let mut ends = self.chain.calls.iter().peekable();
        for (index, frame) in self.chain.frames.iter().enumerate() {
            while let Some(end) = ends.next_if(|end| end.frames <= index) {
                self.call_ends.push(CallEnd { frames: self.resolved.len(), ..*end });
            }
            if collecting == Some(frame.address) {
                let mark = Instruction { offset: -1, opcode: None };
                self.resolved.push((self.codes.collection(tables)?, mark));
            }
            let Some((code, offset)) = resolve(memory, &self.python.layout, &mut self.codes, frame, tables)?
            else {
                return Ok(false);
            };
            if !self.codes.is_shim(code) {
                self.resolved.push((code, Instruction { offset, opcode: None }));
            }
        }
        self.call_ends.extend(ends.map(|end| CallEnd { frames: self.resolved.len(), ..*end }));
        // Frames of 3.11 and 3.12 may point to the numbers that an instruction keeps behind itself.
        let has_instruction = !matches!(self.python.identity.version.minor, 11 | 12);
        if self.options.opcodes.is_some() && has_instruction {
            self.read_opcodes(memory)?;
        }
        self.codes.check(memory, &self.python.layout)
    }

    /// Reads the numbers of the resolved instructions in one call. Those of a frame that is in its thread's own copy of the code
    /// are the numbers there.
    fn read_opcodes(&mut self, memory: &impl ForeignMemory) -> Result<(), Error> {
        let layout = &self.python.layout;
        let codes = &self.codes;
        let shown = self.chain.frames.iter().filter(|frame| !codes.is_shim_at(frame.code));
        let collection = codes.known_collection();
        let of_code = || self.resolved.iter().filter(|(code, _)| Some(*code) != collection);
        let places = shown.zip(of_code()).map(|(frame, &(code, at))| match frame.position {
            RawPosition::Address(address) => address,
            RawPosition::Offset(_) => codes.instructions(code, layout).wrapping_add_signed(at.offset),
        });
        let mut found = vec![0; self.resolved.len()];
        let pieces =
            places.zip(found.chunks_exact_mut(1)).map(|(address, into)| MemoryPiece { address, into });
        let (filled, _) = read_all(memory, pieces)?;
        for ((_, at), &number) in self.resolved.iter_mut().zip(&found[..filled]) {
            at.opcode = (at.offset >= 0).then_some(number);
        }
        Ok(())
    }

    /// Tells which part of the stack of `lane` each call of the interpreter runs.
    fn note_calls(&mut self, lane: &Lane) {
        for end in &self.call_ends {
            let below = self.resolved.len() - end.frames;
            let below = below.checked_sub(1).and_then(|last| lane.known.get(last)).map(|known| known.stack);
            self.calls.push(PythonCall { below: below.or(lane.base), place: end.place });
        }
    }

    /// The stack of the resolved frames on `base`. The part that it shares with the stack before is not looked up again.
    fn intern(
        &mut self,
        lane: &mut Lane,
        base: Option<StackId>,
        tables: &mut Tables,
    ) -> Result<SampleOutcome, Error> {
        let kept = self.resolved.len().min(self.depth);
        let below = base.map_or(0, |base| tables.depth(base) as usize);
        let omitted = (self.resolved.len() + below).saturating_sub(self.depth);
        let base = if below + kept > self.depth { cut(base, self.depth - kept, tables)? } else { base };
        if (lane.base, lane.generation) != (base, self.codes.generation) {
            lane.known.clear();
            (lane.base, lane.generation) = (base, self.codes.generation);
        }
        let frames = self.resolved[..kept].iter().rev();
        let is_same =
            |(known, frame): &(&KnownFrame, &(CodeId, Instruction))| (known.code, known.at) == **frame;
        let shared = lane.known.iter().zip(frames.clone()).take_while(is_same).count();
        lane.known.truncate(shared);
        for &(code, at) in frames.skip(shared) {
            let frame = self.codes.frame((code, at), &self.python, self.options.opcodes, tables)?;
            let parent = lane.known.last().map(|known| known.stack).or(base);
            let stack = tables.intern_stack(parent, frame)?;
            lane.known.push(KnownFrame { code, at, stack });
        }
        self.calls.clear();
        if omitted == 0 {
            self.note_calls(lane);
        }
        let leaf = lane.known.last().map(|known| known.stack).or(base);
        let omitted = omitted as u64;
        Ok(leaf.map_or(SampleOutcome::Idle, |id| SampleOutcome::Stack { id, omitted }))
    }

    /// The local variables of the frames of the stack sampled last, which must still be as it was: its thread is stopped.
    ///
    /// # Errors
    /// If the process is gone.
    pub fn locals(&self, memory: &impl ForeignMemory) -> Result<Vec<Vec<LocalVariable>>, Error> {
        let shown = self.chain.frames.iter().filter(|frame| !self.codes.is_shim_at(frame.code));
        let of_frame = |frame| locals::of_frame(memory, &self.python.layout, frame).map_err(Error::from);
        shown.take(self.depth).map(of_frame).collect()
    }

    fn status(&self, thread: &PythonThread, lane: &Lane) -> ThreadStatus {
        let (layout, state) = (&self.python.layout.thread, lane.snapshot.state());
        let lock = lane.extras.first().filter(|extra| extra.address == thread.lock);
        let holds_gil = match (self.python.layout.gil, layout.gil_flags) {
            (_, Some([holds, _])) => u32_at(state, holds).map(|flag| flag != 0),
            (GilPlace::Runtime(_), _) => {
                lock.and_then(|lock| u64_at(&lock.bytes, 0)).map(|holder| holder == thread.state)
            }
            (GilPlace::Interpreter { .. }, _) => lock.and_then(|lock| {
                let (holder, locked) = (u64_at(&lock.bytes, 0)?, u32_at(&lock.bytes, 8)?);
                Some(holder == thread.state && locked == 1)
            }),
            (GilPlace::Thread, None) => None,
        };
        let requests_gil =
            layout.gil_flags.and_then(|[_, requests]| u32_at(state, requests)).map(|flag| flag != 0);
        ThreadStatus { holds_gil, requests_gil, has_exception: self.has_exception(state) }
    }

    /// Whether an exception is being raised, or one is handled outside of generators.
    fn has_exception(&self, state: &[u8]) -> Option<bool> {
        let layout = &self.python.layout.thread;
        let is_any = |exception: u64| exception != 0 && exception != self.python.none;
        let raised = is_any(u64_at(state, layout.exception?)?);
        let handled = layout.handled.and_then(|handled| u64_at(state, handled.own + handled.value));
        Some(raised || handled.is_some_and(is_any))
    }
}

impl Lane {
    fn new(layout: &Layout, thread: &PythonThread) -> Self {
        // Without a lock, the place is that of the state, which is readable too.
        let lock = if thread.lock == 0 { thread.state } else { thread.lock };
        let collector = collector_of(layout, thread);
        Self {
            snapshot: Snapshot::new(thread.state, layout.thread.size),
            extras: std::iter::once(lock).chain(collector).map(Extra::at).collect(),
            known: Vec::new(),
            base: None,
            generation: 0,
        }
    }
}

/// The address of what tells of a collection of garbage in the interpreter of `thread`.
fn collector_of(layout: &Layout, thread: &PythonThread) -> Option<u64> {
    layout.interpreter.collector.map(|at| moved(thread.interpreter_state, at))
}

/// The frame that has called the collector of garbage, which runs in one thread of an interpreter at a time.
fn collecting_frame(layout: &Layout, thread: &PythonThread, lane: &Lane) -> Option<u64> {
    let collector = collector_of(layout, thread)?;
    let state = lane.extras.iter().find(|extra| extra.address == collector)?;
    let frame = u64_at(&state.bytes, 8)?;
    (u32_at(&state.bytes, 0)? != 0 && frame != 0).then_some(frame)
}

/// Whether the state is still that of the thread: its memory may have become another's.
fn is_state_of(layout: &Layout, state: &[u8], thread: &PythonThread) -> bool {
    u64_at(state, layout.thread.interpreter) == Some(thread.interpreter_state)
        && u64_at(state, layout.thread.thread_id) == Some(thread.library_id)
}

/// The stack of the `depth` frames of `stack` that are nearest to its leaf.
fn cut(stack: Option<StackId>, depth: usize, tables: &mut Tables) -> Result<Option<StackId>, Error> {
    let frames: Vec<FrameId> = tables.frames_leaf_first(stack).take(depth).collect();
    Ok(tables.intern_stack_leaf_first(&frames)?)
}

/// The code of a frame, and the offset of its instruction in bytes; `None` if it is no frame.
pub(crate) fn resolve(
    memory: &impl ForeignMemory,
    layout: &Layout,
    codes: &mut Codes,
    frame: &RawFrame,
    tables: &mut Tables,
) -> Result<Option<(CodeId, i64)>, Error> {
    let Some(code) = codes.find(memory, layout, frame.code, tables)? else { return Ok(None) };
    let Some(offset) = offset(memory, layout, codes, code, frame)? else { return Ok(None) };
    if !codes.has_instruction(code, offset) {
        return Ok(None);
    }
    codes.note_use(code);
    Ok(Some((code, offset)))
}

/// The offset of the current instruction in bytes; `None` if the address is odd.
fn offset(
    memory: &impl ForeignMemory,
    layout: &Layout,
    codes: &Codes,
    code: CodeId,
    frame: &RawFrame,
) -> Result<Option<i64>, Error> {
    let address = match frame.position {
        RawPosition::Offset(offset) => return Ok(Some(offset)),
        RawPosition::Address(address) => address,
    };
    let start = match layout.code.copies.filter(|_| frame.code_copy > 0) {
        Some(copies) => {
            // `_PyCodeArray`: the number of copies, and then their addresses.
            let array = mapped(memory.read_u64(moved(frame.code, copies)))?.unwrap_or_default();
            let entry = moved(array, 8 + 8 * frame.code_copy as usize);
            mapped(memory.read_u64(entry))?.unwrap_or_default()
        }
        None => codes.instructions(code, layout),
    };
    let offset = address.wrapping_sub(start).cast_signed();
    Ok((offset % 2 == 0).then_some(offset))
}
