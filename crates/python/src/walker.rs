//! Samples the stacks of one process.

use borehole_model::{StackId, Tables};
use borehole_process::ForeignMemory;
use hashbrown::{HashMap, HashSet};

use crate::attach::Python;
use crate::bytes::{mapped, moved, u32_at, u64_at};
use crate::chain::{CallEnd, End, FrameChain, RawFrame, RawPosition};
use crate::codes::{CodeId, Codes};
use crate::error::Error;
use crate::layout::{CurrentFrame, GilPlace, Layout};
use crate::snapshot::{Extra, Snapshot, Taken};
use crate::status::ThreadStatus;
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
    offset: i64,
    stack: StackId,
}

#[derive(Debug)]
struct Lane {
    snapshot: Snapshot,
    /// The state of the lock, then the places on the C stack that point to the current frame.
    extras: Vec<Extra>,
    /// The stack sampled last, the root first.
    known: Vec<KnownFrame>,
    generation: u64,
}

/// Samples the stacks of one process. Remembers the process's code and the location of its stacks.
#[derive(Debug)]
pub struct StackWalker {
    layout: Layout,
    none: u64,
    depth: usize,
    codes: Codes,
    /// By the address of the thread's state.
    lanes: HashMap<u64, Lane>,
    chain: FrameChain,
    resolved: Vec<(CodeId, i64)>,
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
            layout: python.layout,
            none: python.none,
            depth,
            codes: Codes::default(),
            lanes: HashMap::new(),
            chain: FrameChain::default(),
            resolved: Vec::new(),
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
        let mut lane = lane.unwrap_or_else(|| Lane::new(&self.layout, thread));
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
            if !is_state_of(&self.layout, lane.snapshot.state(), thread) {
                return Ok(SampleOutcome::Ended);
            }
            let Some(current) = self.current_frame(lane) else { continue };
            if current == 0 {
                return Ok(SampleOutcome::Idle);
            }
            let end = self.chain.follow(memory, &self.layout, &mut lane.snapshot, current)?;
            if stillness == Stillness::Running && !lane.snapshot.is_whole() {
                continue;
            }
            if end == End::Broken || !self.resolve(memory, tables)? {
                return Ok(SampleOutcome::Torn);
            }
            return self.intern(lane, tables);
        }
        Ok(SampleOutcome::Torn)
    }

    /// The address of the current frame; `None` if it is to be read at a place that is not among the extras yet.
    fn current_frame(&self, lane: &mut Lane) -> Option<u64> {
        let state = lane.snapshot.state();
        match self.layout.thread.current {
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

    /// Finds the code of each frame of the chain; `false` if one has none.
    fn resolve(&mut self, memory: &impl ForeignMemory, tables: &mut Tables) -> Result<bool, Error> {
        self.resolved.clear();
        self.call_ends.clear();
        let mut ends = self.chain.calls.iter().peekable();
        for (index, frame) in self.chain.frames.iter().enumerate() {
            while let Some(end) = ends.next_if(|end| end.frames <= index) {
                self.call_ends.push(CallEnd { frames: self.resolved.len(), ..*end });
            }
            let Some(code) = self.codes.find(memory, &self.layout, frame.code, tables)? else {
                return Ok(false);
            };
            let Some(offset) = offset(memory, &self.layout, &self.codes, code, frame)? else {
                return Ok(false);
            };
            if !self.codes.has_instruction(code, offset) {
                return Ok(false);
            }
            self.codes.note_use(code);
            if !self.codes.is_shim(code) {
                self.resolved.push((code, offset));
            }
        }
        self.call_ends.extend(ends.map(|end| CallEnd { frames: self.resolved.len(), ..*end }));
        self.codes.check(memory, &self.layout)
    }

    /// Tells which part of the stack `known` each call of the interpreter runs.
    fn note_calls(&mut self, known: &[KnownFrame]) {
        for end in &self.call_ends {
            let below = self.resolved.len() - end.frames;
            let below = below.checked_sub(1).and_then(|last| known.get(last)).map(|known| known.stack);
            self.calls.push(PythonCall { below, place: end.place });
        }
    }

    /// The stack of the resolved frames. The part that it shares with the stack before is not looked up again.
    fn intern(&mut self, lane: &mut Lane, tables: &mut Tables) -> Result<SampleOutcome, Error> {
        if lane.generation != self.codes.generation {
            lane.known.clear();
            lane.generation = self.codes.generation;
        }
        let kept = self.resolved.len().min(self.depth);
        let frames = self.resolved[..kept].iter().rev();
        let is_same = |(known, frame): &(&KnownFrame, &(CodeId, i64))| (known.code, known.offset) == **frame;
        let shared = lane.known.iter().zip(frames.clone()).take_while(is_same).count();
        lane.known.truncate(shared);
        for &(code, offset) in frames.skip(shared) {
            let frame = self.codes.frame(code, offset, self.layout.code.line_format, tables)?;
            let parent = lane.known.last().map(|known| known.stack);
            let stack = tables.intern_stack(parent, frame)?;
            lane.known.push(KnownFrame { code, offset, stack });
        }
        let omitted = (self.resolved.len() - kept) as u64;
        self.calls.clear();
        if omitted == 0 {
            self.note_calls(&lane.known);
        }
        Ok(lane
            .known
            .last()
            .map_or(SampleOutcome::Idle, |leaf| SampleOutcome::Stack { id: leaf.stack, omitted }))
    }

    fn status(&self, thread: &PythonThread, lane: &Lane) -> ThreadStatus {
        let (layout, state) = (&self.layout.thread, lane.snapshot.state());
        let lock = lane.extras.first().filter(|extra| extra.address == thread.lock);
        let holds_gil = match (self.layout.gil, layout.gil_flags) {
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
        let layout = &self.layout.thread;
        let is_any = |exception: u64| exception != 0 && exception != self.none;
        let raised = is_any(u64_at(state, layout.exception?)?);
        let handled = layout.handled.and_then(|handled| u64_at(state, handled.own + handled.value));
        Some(raised || handled.is_some_and(is_any))
    }
}

impl Lane {
    fn new(layout: &Layout, thread: &PythonThread) -> Self {
        // Without a lock, the place is that of the state, which is readable too.
        let lock = if thread.lock == 0 { thread.state } else { thread.lock };
        Self {
            snapshot: Snapshot::new(thread.state, layout.thread.size),
            extras: vec![Extra::at(lock)],
            known: Vec::new(),
            generation: 0,
        }
    }
}

/// Whether the state is still that of the thread: its memory may have become another's.
fn is_state_of(layout: &Layout, state: &[u8], thread: &PythonThread) -> bool {
    u64_at(state, layout.thread.interpreter) == Some(thread.interpreter_state)
        && u64_at(state, layout.thread.thread_id) == Some(thread.library_id)
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
        None => codes.instructions(code, &layout.code),
    };
    let offset = address.wrapping_sub(start).cast_signed();
    Ok((offset % 2 == 0).then_some(offset))
}
