//! Follows the frames from the executor's state to the root of the stack.
//!
//! Nothing in the process is trusted: a chain that forms a loop, leads out of memory or never ends is detected.

use borehole_process::{Error, ForeignMemory};

use crate::layout::{Layout, fixed};
use crate::prefix::Prefix;
use crate::snapshot::{RawFrame, Snapshot, SnapshotOffset};

/// The maximum length of a chain. Further frames are lost, and the walker reports that.
pub(crate) const LONGEST: usize = 1 << 16;

/// The maximum distance of a delegating generator's stand-in frame from the start of the generator.
/// Source: `zend_generator.execute_fake`, 184 to 248 bytes, in 7.0 to 8.6.
const STAND_IN_WITHIN: u64 = 256;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// It reached the root.
    Whole,
    /// There are no frames.
    Idle,
    /// Memory changed during the walk, or is invalid.
    Broken,
}

/// The frames of a stack, leaf first.
#[derive(Debug, Default)]
pub(crate) struct FrameChain {
    pub(crate) frames: Vec<RawFrame>,
    /// The number of steps of the previous stack, counted from the root, that follow them.
    pub(crate) joined: usize,
    /// The number of frames on the root's side that were not kept.
    pub(crate) omitted: u64,
}

/// The limits and addresses that a walk needs besides the layout.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChainLimits {
    /// The maximum number of frames kept.
    pub(crate) depth: usize,
    /// The address of `zend_pass_function`, which the stand-in frames of some releases have; 0 if unknown.
    pub(crate) pass_function: u64,
    /// Whether frames are followed to the root even if they are known.
    pub(crate) follows_all: bool,
}

/// The work of a frame.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FrameKind {
    /// It runs, or waits for a call of its own.
    Running,
    /// It is a generator that has delegated to another one. The engine entered that one only.
    Delegating,
}

struct ChainWalk<'w, M> {
    memory: &'w M,
    layout: &'w Layout,
    snapshot: &'w mut Snapshot,
    prefix: &'w mut Prefix,
    chain: &'w mut FrameChain,
    limits: ChainLimits,
}

impl FrameChain {
    /// Follows the frames of the state copied by `snapshot` until they match those of `prefix`, and keeps those within
    /// `limits`.
    pub(crate) fn follow(
        &mut self,
        memory: &impl ForeignMemory,
        layout: &Layout,
        snapshot: &mut Snapshot,
        prefix: &mut Prefix,
        limits: ChainLimits,
    ) -> Result<End, Error> {
        self.frames.clear();
        self.joined = 0;
        self.omitted = 0;
        let Some(current) = snapshot.state(layout.executor_current - layout.executor_stack_top) else {
            return Ok(End::Broken);
        };
        if current == 0 {
            return Ok(End::Idle);
        }
        ChainWalk { memory, layout, snapshot, prefix, chain: self, limits }.run(current)
    }

    /// Adds the joined steps of `prefix` to the frames, as if they had been followed.
    pub(crate) fn unfold(&mut self, prefix: &Prefix) {
        self.frames.extend(prefix.frames(std::mem::take(&mut self.joined)));
    }

    fn len(&self) -> u64 {
        self.frames.len() as u64 + self.omitted
    }
}

impl<M: ForeignMemory> ChainWalk<'_, M> {
    fn run(&mut self, mut address: u64) -> Result<End, Error> {
        let mut lap = Lap::new(address);
        while address != 0 {
            if self.joins(address) {
                return Ok(End::Whole);
            }
            let Some(spot) = self.snapshot.find(self.memory, address, fixed::FRAME_SIZE)? else {
                return Ok(if self.snapshot.is_full { self.cut() } else { End::Broken });
            };
            let is_done = if self.is_stand_in(spot, address) {
                self.delegating(spot)?
            } else {
                self.push(spot, address, FrameKind::Running)
            };
            if !is_done || !self.snapshot.is_steady(spot, self.layout.frame_previous) {
                return Ok(End::Broken);
            }
            address = self.snapshot.u64(spot, self.layout.frame_previous);
            if self.chain.len() >= LONGEST as u64 && address != 0 {
                return Ok(self.cut());
            }
            if lap.is_back_at(address) {
                return Ok(End::Broken);
            }
        }
        Ok(End::Whole)
    }

    /// Whether the frame at `address` and all its callers are unchanged since the previous sample. Never true for the leaf,
    /// whose current instruction is not a call, nor if frames at the root are omitted, because the omitted ones may then
    /// differ.
    fn joins(&mut self, address: u64) -> bool {
        if self.limits.follows_all || self.limits.depth < LONGEST {
            return false;
        }
        let Some(callee) = self.chain.frames.last() else { return false };
        let joined = self.prefix.join(self.snapshot, callee, address, self.layout);
        let fits = |joined: &usize| joined + self.chain.frames.len() <= LONGEST;
        self.chain.joined = joined.filter(fits).unwrap_or_default();
        self.chain.joined > 0
    }

    /// Records that the chain is longer than the maximum.
    fn cut(&mut self) -> End {
        self.chain.omitted += 1;
        End::Whole
    }

    /// Whether the frame at `address` is the stand-in inside a delegating generator.
    fn is_stand_in(&self, spot: SnapshotOffset, address: u64) -> bool {
        let function = self.snapshot.u64(spot, fixed::FRAME_FUNCTION);
        if function != 0 && function != self.limits.pass_function {
            return false;
        }
        let object = self.snapshot.u64(spot, fixed::FRAME_THIS);
        object < address && address - object < STAND_IN_WITHIN
    }

    /// Adds the frame at `spot` if it has a function. PHP 7 puts frames without one below functions called in the middle of an
    /// instruction. Returns `false` if the frame changed.
    fn push(&mut self, spot: SnapshotOffset, address: u64, kind: FrameKind) -> bool {
        let is_leaf = self.chain.len() == 0;
        let [first, second] = self.snapshot.frames(spot, address, self.layout);
        let steady = first.function == second.function && (is_leaf || first.op == second.op);
        if first.function == 0 {
            return steady;
        }
        if self.chain.frames.len() < self.limits.depth {
            let is_entry = first.is_entry && kind == FrameKind::Running;
            self.chain.frames.push(RawFrame { is_entry, ..first });
        } else {
            self.chain.omitted += 1;
        }
        steady
    }

    /// Adds the frames of the generators that wait in `yield from`, starting at `spot`, the stand-in of the generator that was
    /// called. The last of them delegates to the running generator, whose frame has been added already. Returns `false` if the
    /// chain is broken.
    fn delegating(&mut self, spot: SnapshotOffset) -> Result<bool, Error> {
        let mut generator = self.snapshot.u64(spot, fixed::FRAME_THIS);
        let mut waiting = Vec::new();
        loop {
            let [delegate, frame] = [self.layout.generator_delegate, self.layout.generator_frame];
            let length = delegate.max(frame) + 8;
            let Some(spot) = self.snapshot.find(self.memory, generator, length)? else { return Ok(false) };
            if !self.snapshot.is_steady(spot, delegate) || !self.snapshot.is_steady(spot, frame) {
                return Ok(false);
            }
            let next = self.snapshot.u64(spot, delegate);
            if next == 0 {
                break;
            }
            waiting.push(self.snapshot.u64(spot, frame));
            if waiting.len() >= LONGEST {
                return Ok(false);
            }
            generator = next;
        }
        for &address in waiting.iter().rev() {
            let Some(spot) = self.snapshot.find(self.memory, address, fixed::FRAME_SIZE)? else {
                return Ok(false);
            };
            if !self.push(spot, address, FrameKind::Delegating) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Detects a walk that forms a loop, with a mark that moves at every power of two (Brent's algorithm).
struct Lap {
    mark: u64,
    steps: u32,
    until: u32,
}

impl Lap {
    const fn new(start: u64) -> Self {
        Self { mark: start, steps: 0, until: 1 }
    }

    fn is_back_at(&mut self, address: u64) -> bool {
        if address == self.mark {
            return true;
        }
        self.steps += 1;
        if self.steps == self.until {
            *self = Self { mark: address, steps: 0, until: self.until.saturating_mul(2) };
        }
        false
    }
}
