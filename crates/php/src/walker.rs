//! Samples the stacks of one process.

use borehole_model::{StackId, Tables};
use borehole_process::ForeignMemory;
use hashbrown::HashMap;

use crate::attach::Php;
use crate::chain::{ChainLimits, End, FrameChain};
use crate::error::{Error, ErrorKind};
use crate::executor::Executor;
use crate::function::{CachedFunction, Elsewhere};
use crate::lookup::{FunctionLookup, Lookup};
use crate::prefix::{CachedFrame, Prefix};
use crate::proof;
use crate::remote;
use crate::snapshot::{RawFrame, Snapshot};
use crate::watch::RequestWatch;

/// The number of times a sample is restarted because it needed memory that had not been copied. The next round copies it.
const ROUNDS: usize = 4;

/// The maximum number of executors, more than any program has threads.
const MOST_EXECUTORS: usize = 1 << 12;

/// Options of walking stacks.
#[derive(Clone, Copy, Debug)]
pub struct WalkOptions {
    /// The maximum number of frames kept of a stack, counted from the leaf; `None`: all.
    pub depth: Option<u32>,
    /// Whether frames carry the name of the current instruction.
    pub opcodes: bool,
    /// Whether the calls of the engine's main function are told with each stack, which takes longer. `depth` must be `None`.
    pub calls: bool,
}

impl Default for WalkOptions {
    fn default() -> Self {
        Self { depth: None, opcodes: true, calls: false }
    }
}

/// The result of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SampleOutcome {
    /// A consistent stack.
    Stack(SampledStack),
    /// No PHP code was executing: a worker between requests, or PHP starting up or shutting down.
    Idle,
    /// The stack changed during the read, or its memory is invalid. An immediate retry is cheap.
    Torn,
}

/// A sampled stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SampledStack {
    /// The stack in the walker's tables.
    pub id: StackId,
    /// The number of frames omitted at the root, because there are more than requested.
    ///
    /// In stacks with more than 65,536 frames, the rest counts as one.
    pub omitted: u64,
}

/// Samples the stacks of one process. Caches the process's functions and the location of its stacks.
#[derive(Debug)]
pub struct StackWalker {
    php: Php,
    options: WalkOptions,
    limits: ChainLimits,
    lookup: Lookup,
    /// The lane of each executor, by the address of its state.
    lanes: HashMap<u64, SampledExecutor>,
    chain: FrameChain,
    /// See [`StackWalker::calls`]; the root's first.
    calls: Vec<Option<StackId>>,
}

#[derive(Debug)]
struct SampledExecutor {
    snapshot: Snapshot,
    request: RequestWatch,
    prefix: Prefix,
    is_idle: bool,
    /// The number of times it may still be implausible; `None` once it has been proven. An executor that was idle when attached
    /// to has proven little.
    doubts: Option<usize>,
}

impl SampledExecutor {
    fn new(php: &Php, executor: &Executor) -> Self {
        let layout = &php.layout;
        let start = remote::moved(executor.globals, layout.executor_stack_top);
        let length = layout.executor_before_exception + 8 - layout.executor_stack_top;
        Self {
            snapshot: Snapshot::new(start, length),
            request: RequestWatch::new(php, executor),
            prefix: Prefix::default(),
            is_idle: false,
            doubts: Some(proof::ATTEMPTS),
        }
    }
}

impl StackWalker {
    /// Creates a walker without any knowledge of the process of `php`.
    #[must_use]
    pub fn new(php: &Php, options: WalkOptions) -> Self {
        let depth = options.depth.map_or(usize::MAX, |depth| usize::try_from(depth).unwrap_or(usize::MAX));
        Self {
            php: php.clone(),
            options,
            limits: ChainLimits { depth, pass_function: php.pass_function, follows_all: options.calls },
            lookup: Lookup::new(php),
            lanes: HashMap::new(),
            chain: FrameChain::default(),
            calls: Vec::new(),
        }
    }

    /// The calls of the engine's main function, `execute_ex`, in the stack sampled last, the leaf's first: the stack below the
    /// frames that each runs. Empty unless [`WalkOptions::calls`] is set.
    pub fn calls(&self) -> impl Iterator<Item = Option<StackId>> {
        self.calls.iter().rev().copied()
    }

    /// The current stack of `executor`, with its frames in `tables`. Pass the same tables for all samples of this walker.
    ///
    /// # Errors
    /// If the process is gone or may no longer be read, or the tables are full. Invalid memory is not an error but
    /// [`SampleOutcome::Torn`].
    pub fn sample(
        &mut self,
        memory: &impl ForeignMemory,
        executor: &Executor,
        tables: &mut Tables,
    ) -> Result<SampleOutcome, Error> {
        if self.lanes.len() > MOST_EXECUTORS {
            self.lanes.clear();
        }
        let lane = self.lanes.remove(&executor.globals);
        let mut lane = lane.unwrap_or_else(|| SampledExecutor::new(&self.php, executor));
        let outcome = self.sample_lane(memory, executor, &mut lane, tables);
        lane.snapshot.grow_older();
        self.lookup.grow_older();
        self.lanes.insert(executor.globals, lane);
        outcome
    }

    fn sample_lane(
        &mut self,
        memory: &impl ForeignMemory,
        executor: &Executor,
        lane: &mut SampledExecutor,
        tables: &mut Tables,
    ) -> Result<SampleOutcome, Error> {
        for _ in 0..ROUNDS {
            let extras = lane.request.extra().into_iter().chain(self.lookup.watches.extras());
            if !lane.snapshot.take(memory, extras)? {
                self.lookup.watches.clear();
                return Ok(SampleOutcome::Torn);
            }
            let SampledExecutor { snapshot, prefix, .. } = lane;
            prefix.begin(self.lookup.functions.generation);
            let end = self.chain.follow(memory, &self.php.layout, snapshot, prefix, self.limits)?;
            let was_idle = std::mem::replace(&mut lane.is_idle, end == End::Idle);
            if lane.request.has_changed(snapshot) || (lane.is_idle && !was_idle) {
                self.lookup.forget_request();
            }
            match end {
                End::Broken => return Ok(SampleOutcome::Torn),
                End::Idle => return Ok(SampleOutcome::Idle),
                End::Whole if !self.is_proven(memory, executor, &mut lane.doubts)? => {
                    return Ok(SampleOutcome::Torn);
                }
                End::Whole if !lane.snapshot.is_whole() => lane.snapshot.keep_alone(),
                End::Whole => {
                    self.check_request(memory, &lane.prefix, tables)?;
                    let elsewhere = self.elsewhere(executor, &lane.snapshot);
                    if let Some(outcome) = self.resolve(memory, &elsewhere, &mut lane.prefix, tables)? {
                        return Ok(outcome);
                    }
                }
            }
        }
        Ok(SampleOutcome::Torn)
    }

    /// Whether a busy executor has been proven plausible.
    fn is_proven(
        &self,
        memory: &impl ForeignMemory,
        executor: &Executor,
        doubts: &mut Option<usize>,
    ) -> Result<bool, Error> {
        let Some(left) = *doubts else { return Ok(true) };
        match proof::executor(memory, &self.php.layout, executor) {
            Ok(()) => *doubts = None,
            Err(error) if error.kind() == ErrorKind::Implausible && left > 0 => *doubts = Some(left - 1),
            Err(error) => return Err(error),
        }
        Ok(doubts.is_none())
    }

    /// If every frame is looked up again, checks that functions which live for one request still belong to the current request.
    /// A command-line program has only one request.
    #[inline]
    fn check_request(
        &mut self,
        memory: &impl ForeignMemory,
        prefix: &Prefix,
        tables: &Tables,
    ) -> Result<(), Error> {
        if !prefix.distrusts || self.php.identity.sapi == "cli" {
            return Ok(());
        }
        let frames = self.chain.frames.iter().copied().chain(prefix.frames(self.chain.joined));
        let addresses = frames.map(|frame| frame.function);
        if !self.lookup.are_of_this_request(memory, addresses, tables)? {
            self.lookup.forget_request();
        }
        Ok(())
    }

    fn elsewhere(&self, executor: &Executor, snapshot: &Snapshot) -> Elsewhere {
        let layout = &self.php.layout;
        let end = remote::moved(executor.globals, layout.executor_size);
        let before = snapshot.state(layout.executor_before_exception - layout.executor_stack_top);
        Elsewhere { state: (executor.globals, end), before_exception: before.unwrap_or_default() }
    }

    /// Builds the stack of the chain, from the root to the leaf; `None` if something must be read together with the frames
    /// first.
    fn resolve(
        &mut self,
        memory: &impl ForeignMemory,
        elsewhere: &Elsewhere,
        prefix: &mut Prefix,
        tables: &mut Tables,
    ) -> Result<Option<SampleOutcome>, Error> {
        self.calls.clear();
        let Some(mut is_missing) = self.check_joined(memory, prefix, tables)? else {
            return Ok(Some(SampleOutcome::Torn));
        };
        let joined = self.chain.joined;
        let mut stack = prefix.last_of(joined).and_then(|step| step.stack);
        let rows = self.chain.frames.len();
        for row in (0..rows).rev() {
            let (raw, depth) = (self.chain.frames[row], joined + rows - 1 - row);
            self.note_call(memory, &raw, stack, tables)?;
            let callee = row.checked_sub(1).map(|row| self.chain.frames[row]);
            let known = callee.and_then(|callee| prefix.at(depth, &raw, &callee));
            if let Some(step) = known.filter(|step| step.stays) {
                stack = step.stack;
                continue;
            }
            let site = Site { raw, callee, depth, elsewhere };
            match self.frame(memory, &site, known, stack, prefix, tables)? {
                FrameStep::To(with_frame) => stack = with_frame,
                FrameStep::Again => {
                    is_missing = true;
                    prefix.has_ended = true;
                }
                FrameStep::Torn => return Ok(Some(SampleOutcome::Torn)),
            }
        }
        if is_missing {
            return Ok(None);
        }
        let stack = stack.map(|id| SampleOutcome::Stack(SampledStack { id, omitted: self.chain.omitted }));
        Ok(Some(stack.unwrap_or(SampleOutcome::Idle)))
    }

    /// Notes that the engine's main function was called for a frame of code, with `below` as the stack of its caller. Internal
    /// functions are called without it.
    fn note_call(
        &mut self,
        memory: &impl ForeignMemory,
        raw: &RawFrame,
        below: Option<StackId>,
        tables: &mut Tables,
    ) -> Result<(), Error> {
        if self.options.calls
            && raw.is_entry
            && let FunctionLookup::Found(number) = self.lookup.find(memory, raw.function, tables)?
            && self.lookup.functions.all[number].header.is_user
        {
            self.calls.push(below);
        }
        Ok(())
    }

    /// Adds the frame at `site` to `stack`, and caches it. `known` is the cached step, if only its function may have changed.
    fn frame(
        &mut self,
        memory: &impl ForeignMemory,
        site: &Site<'_>,
        known: Option<CachedFrame>,
        stack: Option<StackId>,
        prefix: &mut Prefix,
        tables: &mut Tables,
    ) -> Result<FrameStep, Error> {
        let Site { raw, callee, depth, elsewhere } = *site;
        let number = match self.lookup.find(memory, raw.function, tables)? {
            FunctionLookup::Found(number) => number,
            FunctionLookup::Again => return Ok(FrameStep::Again),
            FunctionLookup::Nowhere => return Ok(FrameStep::Torn),
        };
        if let Some(step) = known.filter(|step| step.number == number) {
            return Ok(FrameStep::To(step.stack));
        }
        let function = &self.lookup.functions.all[number];
        let is_leaving = function.is_leaving(raw.op);
        // An earlier call has left it there.
        if is_pending(&raw, function) || (is_leaving && callee.is_some_and(|callee| callee.is_nested)) {
            return Ok(FrameStep::Torn);
        }
        let FrameStep::To(stack) = self.extend(memory, stack, number, site, tables)? else {
            self.lookup.functions.forget(raw.function);
            return Ok(FrameStep::Torn);
        };
        match callee {
            Some(callee) if !is_leaving && !elsewhere.holds(raw.op) => {
                let stays = self.stays(&raw, number, depth == 0);
                prefix.push(depth, CachedFrame::new(raw, number, stays, stack), &callee);
            }
            _ => prefix.has_ended = true,
        }
        Ok(FrameStep::To(stack))
    }

    /// Checks that the functions of the joined steps are unchanged; otherwise adds these steps to the frames of the chain.
    /// Returns whether a function must be read together with the frames first; `None` if one is no longer a function.
    fn check_joined(
        &mut self,
        memory: &impl ForeignMemory,
        prefix: &mut Prefix,
        tables: &mut Tables,
    ) -> Result<Option<bool>, Error> {
        let (mut is_missing, mut is_other) =
            (false, prefix.distrusts || prefix.generation != self.lookup.functions.generation);
        let mut count = self.chain.joined;
        while let Some((depth, step)) = prefix.doubtful(count).filter(|_| !is_other) {
            match self.lookup.find(memory, step.raw.function, tables)? {
                FunctionLookup::Found(number) => is_other = number != step.number,
                FunctionLookup::Again => is_missing = true,
                FunctionLookup::Nowhere => return Ok(None),
            }
            count = depth;
        }
        if is_missing {
            prefix.has_ended = true;
        }
        // A function's number may have passed to another function that was looked up since.
        let has_others = prefix.generation != self.lookup.functions.generation;
        if is_other || has_others {
            self.chain.unfold(prefix);
        }
        if has_others {
            prefix.truncate(0);
        }
        Ok(Some(is_missing))
    }

    /// Whether the function of a frame cannot change while its stack stays: declared functions, and the program's main code,
    /// which is at the root until the program ends.
    fn stays(&self, raw: &RawFrame, number: usize, is_root: bool) -> bool {
        let is_program = is_root && self.chain.omitted == 0 && self.php.identity.sapi == "cli";
        self.lookup.stays(raw.function)
            || (is_program && self.lookup.functions.all[number].header.is_code_of_file())
    }

    /// `stack` with the frame at `site`, of the function `number`, on top, and the function that it calls without a frame.
    fn extend(
        &mut self,
        memory: &impl ForeignMemory,
        stack: Option<StackId>,
        number: usize,
        site: &Site<'_>,
        tables: &mut Tables,
    ) -> Result<FrameStep, Error> {
        let Site { raw, callee, elsewhere, .. } = *site;
        let is_leaf = callee.is_none();
        let release = self.options.opcodes.then_some(self.php.identity.release);
        let function = &mut self.lookup.functions.all[number];
        if function.is_nameless() {
            return Ok(FrameStep::To(stack));
        }
        let frame = match function.frame(raw.op, elsewhere, release, tables)? {
            Some(frame) => frame,
            None if is_leaf && self.lookup.is_compiled(raw.function) => {
                self.lookup.functions.all[number].frame_anywhere(release, tables)?
            }
            None => return Ok(FrameStep::Torn),
        };
        let stack = tables.intern_stack(stack, frame)?;
        let function = &self.lookup.functions.all[number];
        // A leaf may have left such a call long ago: its instruction is not kept up to date.
        let call = function.frameless_call(raw.op, &self.php.layout).filter(|_| !is_leaf);
        let called = call.map(|call| self.lookup.frameless(memory, call, tables)).transpose()?.flatten();
        let Some(called) = called else { return Ok(FrameStep::To(Some(stack))) };
        match self.lookup.functions.all[called].frame(0, elsewhere, release, tables)? {
            Some(frame) => Ok(FrameStep::To(Some(tables.intern_stack(Some(stack), frame)?))),
            None => Ok(FrameStep::Torn),
        }
    }
}

/// A frame of the chain, with its context.
#[derive(Clone, Copy)]
struct Site<'e> {
    raw: RawFrame,
    /// The frame that it called; `None` for the leaf.
    callee: Option<RawFrame>,
    /// The number of frames between it and the root.
    depth: usize,
    elsewhere: &'e Elsewhere,
}

enum FrameStep {
    /// The stack up to it; `None` if it is still empty, because frames without a name are left out.
    To(Option<StackId>),
    /// Its function is read together with the frames from now on.
    Again,
    /// The frame is inconsistent, or cannot belong to that function.
    Torn,
}

/// Whether a frame is of a call that is only being prepared: an instruction called it, and it has no caller's frame. The
/// program has made that call and returned to prepare it again while the frames were read; nothing else shows it. The nameless
/// function that a fiber begins with looks like this after the program has ended.
fn is_pending(raw: &RawFrame, function: &CachedFunction) -> bool {
    raw.previous == 0 && raw.is_nested && !function.is_nameless()
}
