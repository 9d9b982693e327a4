//! One stack after the other out of one process.

use borehole_model::{FrameId, StackId, Tables};
use borehole_process::Memory;
use hashbrown::HashMap;

use crate::attach::Php;
use crate::chain::{Chain, End, Limits, RawFrame};
use crate::error::Error;
use crate::executor::Executor;
use crate::function::{Elsewhere, Function, Functions, Header, Known};
use crate::layout::fixed;
use crate::remote;
use crate::snapshot::Snapshot;
use crate::watch::Watches;

/// How often one sample is begun anew because it went through memory that had not been copied. From then on it has.
const ROUNDS: usize = 4;

/// More functions than any program has; those that come and go may add up to it.
const MOST_FUNCTIONS: usize = 1 << 16;

/// More threads than any program has.
const MOST_EXECUTORS: usize = 1 << 12;

/// How stacks are walked.
#[derive(Clone, Copy, Debug)]
pub struct WalkOptions {
    /// How many frames of a stack are kept, counted from the leaf; `None`: all.
    pub depth: Option<u32>,
    /// Whether frames carry the name of the instruction that is executing.
    pub opcodes: bool,
}

impl Default for WalkOptions {
    fn default() -> Self {
        Self { depth: None, opcodes: true }
    }
}

/// What a sample found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A stack that stood there while it was read.
    Stack(Stack),
    /// No code of PHP was executing: a worker between requests, or PHP on its way up or down.
    Idle,
    /// The stack changed while it was read, or what was read makes no sense. Trying again at once is cheap.
    Torn,
}

/// A stack that was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stack {
    /// Its frames, in the tables that the walker was given.
    pub id: StackId,
    /// How many frames on the root's side are not in it, because there are more than were asked for.
    pub omitted: u64,
}

/// Walks the stacks of one process. It remembers the process's functions, and where its stacks stand.
#[derive(Debug)]
pub struct Walker {
    php: Php,
    options: WalkOptions,
    limits: Limits,
    functions: Functions,
    watches: Watches,
    snapshots: HashMap<u64, Snapshot>,
    chain: Chain,
    /// The functions that are called without a frame, by their number.
    frameless: HashMap<u32, u64>,
}

/// What became of the frames of a chain.
enum Resolved {
    Outcome(Outcome),
    /// Something has to be read with the frames that was not.
    Again,
}

impl Walker {
    /// A walker that knows nothing yet of the process that `php` is in.
    #[must_use]
    pub fn new(php: &Php, options: WalkOptions) -> Self {
        let depth = options.depth.map_or(usize::MAX, |depth| usize::try_from(depth).unwrap_or(usize::MAX));
        Self {
            php: php.clone(),
            options,
            limits: Limits { depth, pass_function: php.pass_function },
            functions: Functions::default(),
            watches: Watches::default(),
            snapshots: HashMap::new(),
            chain: Chain::default(),
            frameless: HashMap::new(),
        }
    }

    /// The stack that `executor` has now, its frames in `tables`: the same ones for all samples of this walker.
    ///
    /// # Errors
    /// When the process is gone or may no longer be read, or the tables are full. Memory that makes no sense is
    /// [`Outcome::Torn`].
    pub fn sample(
        &mut self,
        memory: &impl Memory,
        executor: &Executor,
        tables: &mut Tables,
    ) -> Result<Outcome, Error> {
        let mut snapshot = self.snapshot(executor);
        let outcome = self.sample_into(memory, executor, &mut snapshot, tables);
        snapshot.grow_older();
        self.watches.grow_older();
        self.snapshots.insert(executor.globals, snapshot);
        outcome
    }

    fn snapshot(&mut self, executor: &Executor) -> Snapshot {
        if self.snapshots.len() > MOST_EXECUTORS {
            self.snapshots.clear();
        }
        let layout = &self.php.layout;
        let start = remote::moved(executor.globals, layout.executor_stack_top);
        let length = layout.executor_before_exception + 8 - layout.executor_stack_top;
        self.snapshots.remove(&executor.globals).unwrap_or_else(|| Snapshot::new(start, length))
    }

    fn sample_into(
        &mut self,
        memory: &impl Memory,
        executor: &Executor,
        snapshot: &mut Snapshot,
        tables: &mut Tables,
    ) -> Result<Outcome, Error> {
        for _ in 0..ROUNDS {
            self.watches.aim(&self.php, executor);
            if !snapshot.take(memory, self.watches.extras())? {
                self.watches.clear();
                return Ok(Outcome::Torn);
            }
            if self.watches.is_other_request() {
                self.functions.forget_request(&self.php);
            }
            match self.chain.follow(memory, &self.php.layout, snapshot, self.limits)? {
                End::Broken => return Ok(Outcome::Torn),
                End::Idle => {
                    self.functions.forget_request(&self.php);
                    return Ok(Outcome::Idle);
                }
                End::Whole if !snapshot.is_whole() => snapshot.keep_alone(),
                End::Whole => {
                    let elsewhere = self.elsewhere(executor, snapshot);
                    if let Resolved::Outcome(outcome) = self.resolve(memory, &elsewhere, tables)? {
                        return Ok(outcome);
                    }
                }
            }
        }
        Ok(Outcome::Torn)
    }

    fn elsewhere(&self, executor: &Executor, snapshot: &Snapshot) -> Elsewhere {
        let layout = &self.php.layout;
        let end = remote::moved(executor.globals, layout.executor_size);
        let before = snapshot.state(layout.executor_before_exception - layout.executor_stack_top);
        Elsewhere { state: (executor.globals, end), before_exception: before.unwrap_or_default() }
    }

    /// Makes a stack of the chain, from the root to the leaf.
    fn resolve(
        &mut self,
        memory: &impl Memory,
        elsewhere: &Elsewhere,
        tables: &mut Tables,
    ) -> Result<Resolved, Error> {
        if self.functions.len() > MOST_FUNCTIONS {
            self.functions.clear();
        }
        let release = self.options.opcodes.then_some(self.php.identity.release);
        let (mut stack, mut again) = (None, false);
        for row in (0..self.chain.frames.len()).rev() {
            let raw = self.chain.frames[row];
            let number = match self.function(memory, &raw, tables)? {
                Sought::Found(number) => number,
                Sought::Again => {
                    again = true;
                    continue;
                }
                Sought::Nowhere => return Ok(Resolved::Outcome(Outcome::Torn)),
            };
            let function = self.functions.get(number);
            if function.is_nameless() {
                continue;
            }
            let Some(frame) = function.frame(raw.op, elsewhere, release, tables)? else {
                self.functions.forget(raw.function);
                return Ok(Resolved::Outcome(Outcome::Torn));
            };
            stack = Some(tables.intern_stack(stack, frame)?);
            // A leaf may have left such a call long ago: its instruction is not kept up to date.
            let call = function.frameless_call(raw.op, &self.php.layout).filter(|_| row > 0);
            if let Some(call) = call
                && let Some(frame) = self.frameless(memory, call, elsewhere, tables)?
            {
                stack = Some(tables.intern_stack(stack, frame)?);
            }
        }
        if again {
            return Ok(Resolved::Again);
        }
        let stack = stack.map(|id| Outcome::Stack(Stack { id, omitted: self.chain.omitted }));
        Ok(Resolved::Outcome(stack.unwrap_or(Outcome::Idle)))
    }

    /// The frame of a function of PHP that has none.
    fn frameless(
        &mut self,
        memory: &impl Memory,
        number: u32,
        elsewhere: &Elsewhere,
        tables: &mut Tables,
    ) -> Result<Option<FrameId>, Error> {
        let function = match self.frameless.get(&number) {
            Some(function) => *function,
            None => {
                let function = self.frameless_function(memory, number).unwrap_or_default();
                self.frameless.insert(number, function);
                function
            }
        };
        let raw = RawFrame { address: 0, function, op: 0 };
        match self.function(memory, &raw, tables)? {
            Sought::Found(number) => self.functions.get(number).frame(0, elsewhere, None, tables),
            Sought::Again | Sought::Nowhere => Ok(None),
        }
    }

    fn frameless_function(&self, memory: &impl Memory, number: u32) -> Option<u64> {
        let functions = memory.read_u64(self.php.frameless_functions).ok()?;
        memory.read_u64(remote::moved(functions, usize::try_from(number).ok()?.checked_mul(8)?)).ok()
    }

    /// The function of a frame.
    fn function(
        &mut self,
        memory: &impl Memory,
        raw: &RawFrame,
        tables: &mut Tables,
    ) -> Result<Sought, Error> {
        match self.functions.at(raw.function) {
            Some(Known::Stays(number)) => return Ok(Sought::Found(number)),
            Some(Known::ComesAndGoes) => return self.watched(memory, raw.function, tables),
            None => {}
        }
        let Some(header) = self.read_header(memory, raw.function)? else { return Ok(Sought::Nowhere) };
        if header.is_short_lived() {
            self.functions.remember(raw.function, Known::ComesAndGoes);
            return self.watched(memory, raw.function, tables);
        }
        let Some(function) = Function::read(memory, header, tables)? else { return Ok(Sought::Nowhere) };
        let number = self.functions.add(function);
        self.functions.remember(raw.function, Known::Stays(number));
        Ok(Sought::Found(number))
    }

    fn read_header(&self, memory: &impl Memory, address: u64) -> Result<Option<Header>, Error> {
        let mut bytes = [0; fixed::FUNCTION_SIZE];
        let filled = remote::read_some(memory, address, &mut bytes)?;
        Ok(Header::parse(&bytes[..filled], &self.php.layout))
    }

    /// The function at an address that is read by itself, because there are too many to read with the frames.
    fn unwatched(
        &mut self,
        memory: &impl Memory,
        address: u64,
        tables: &mut Tables,
    ) -> Result<Sought, Error> {
        let Some(header) = self.read_header(memory, address)? else { return Ok(Sought::Nowhere) };
        if let Some(number) = self.functions.find(&header) {
            return Ok(Sought::Found(number));
        }
        let function = Function::read(memory, header, tables)?;
        Ok(function.map_or(Sought::Nowhere, |function| Sought::Found(self.functions.add(function))))
    }

    /// The function at an address that was read together with the frames, or will be.
    fn watched(&mut self, memory: &impl Memory, address: u64, tables: &mut Tables) -> Result<Sought, Error> {
        let Some(watch) = self.watches.of(address) else {
            if self.watches.add(address) {
                return Ok(Sought::Again);
            }
            return self.unwatched(memory, address, tables);
        };
        let Some(header) = watch.header(&self.php.layout) else { return Ok(Sought::Nowhere) };
        let wanted = header.ops().filter(|&(ops, _)| !self.php.is_shared(ops));
        if !watch.aim_at(wanted) {
            return Ok(Sought::Again);
        }
        match self.functions.find(&header) {
            Some(number) if self.functions.get(number).begins_with(watch.ops()) => Ok(Sought::Found(number)),
            // Read now, it may be something else already: what is read with the frames the next time decides.
            _ => Ok(match Function::read(memory, header, tables)? {
                Some(function) => {
                    self.functions.add(function);
                    Sought::Again
                }
                None => Sought::Nowhere,
            }),
        }
    }
}

/// What became of the search for a function.
enum Sought {
    Found(usize),
    /// It is being read with the frames from now on.
    Again,
    /// There is none.
    Nowhere,
}
