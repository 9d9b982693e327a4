//! From the executor's state along the frames to the root of the stack.
//!
//! Nothing here trusts the process: a chain that comes back to itself, leads out of memory or never ends is found.

use borehole_process::{Error, Memory};

use crate::layout::{Layout, fixed};
use crate::prefix::Prefix;
use crate::remote::{u32_at, u64_at};
use crate::snapshot::{Snapshot, Spot};

/// The longest chain that is followed. Frames behind it are lost, which the walker says.
pub(crate) const LONGEST: usize = 1 << 16;

/// The stand-in frame of a generator that delegates lies within the generator, at most so far behind its start.
/// Source: `zend_generator.execute_fake`, 184 to 248 bytes, in 7.0 to 8.6.
const STAND_IN_WITHIN: u64 = 256;

/// A frame as it stands in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RawFrame {
    pub(crate) address: u64,
    pub(crate) function: u64,
    /// Its instruction; meaningless in a function that is part of PHP.
    pub(crate) op: u64,
    /// The frame that it was called by.
    pub(crate) previous: u64,
    /// Whether it is known to have been called by an instruction of that frame.
    pub(crate) is_nested: bool,
}

impl RawFrame {
    /// The frame in these bytes, which stand at `address`.
    #[inline]
    pub(crate) fn parse(address: u64, bytes: &[u8; fixed::FRAME_SIZE], layout: &Layout) -> Self {
        let at = |offset| u64_at(bytes, offset).unwrap_or_default();
        let call = u32_at(bytes, fixed::FRAME_CALL).unwrap_or_default();
        Self {
            address,
            function: at(fixed::FRAME_FUNCTION),
            op: at(fixed::FRAME_OP),
            previous: at(layout.frame_previous),
            is_nested: layout.frame_top != 0 && call & layout.frame_top == 0,
        }
    }
}

/// How following the chain ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// At the root.
    Whole,
    /// There are no frames.
    Idle,
    /// Somewhere the memory changed under us, or makes no sense.
    Broken,
}

/// The frames of a stack, the leaf first.
#[derive(Debug, Default)]
pub(crate) struct Chain {
    pub(crate) frames: Vec<RawFrame>,
    /// So many steps of the stack before, from the root on, come behind them.
    pub(crate) joined: usize,
    /// Frames on the root's side that were not kept.
    pub(crate) omitted: u64,
}

/// What a walk has to know besides the layout.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// How many frames are kept.
    pub(crate) depth: usize,
    /// The function that does nothing, which stands in stand-ins of some releases; 0 if unknown.
    pub(crate) pass_function: u64,
}

/// Follows one chain.
struct Walk<'w, M> {
    memory: &'w M,
    layout: &'w Layout,
    snapshot: &'w mut Snapshot,
    prefix: &'w mut Prefix,
    chain: &'w mut Chain,
    limits: Limits,
}

impl Chain {
    /// Follows the frames of the state that `snapshot` holds a copy of up to where they are those of `prefix`, and keeps those
    /// within `limits`.
    pub(crate) fn follow(
        &mut self,
        memory: &impl Memory,
        layout: &Layout,
        snapshot: &mut Snapshot,
        prefix: &mut Prefix,
        limits: Limits,
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
        Walk { memory, layout, snapshot, prefix, chain: self, limits }.run(current)
    }

    /// Has the steps of `prefix` that were joined among its frames, as if they had been followed.
    pub(crate) fn unfold(&mut self, prefix: &Prefix) {
        self.frames.extend(prefix.frames(std::mem::take(&mut self.joined)));
    }

    fn len(&self) -> u64 {
        self.frames.len() as u64 + self.omitted
    }
}

impl<M: Memory> Walk<'_, M> {
    fn run(&mut self, mut address: u64) -> Result<End, Error> {
        let mut lap = Lap::new(address);
        while address != 0 {
            if self.joins(address) {
                return Ok(End::Whole);
            }
            let Some(spot) = self.snapshot.find(self.memory, address, fixed::FRAME_SIZE)? else {
                return Ok(if self.snapshot.is_full() { self.cut() } else { End::Broken });
            };
            let is_done = if self.is_stand_in(spot, address) {
                self.delegating(spot)?
            } else {
                self.push(spot, address)
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

    /// Whether the frame at `address` and all before it are those that were there before. The leaf is not: what it is in the
    /// middle of is no call. Nor are they where some are left out at the root, for then others are than before.
    fn joins(&mut self, address: u64) -> bool {
        let Some(callee) = self.chain.frames.last().filter(|_| self.limits.depth >= LONGEST) else {
            return false;
        };
        let joined = self.prefix.join(self.snapshot, callee, address, self.layout);
        let fits = |joined: &usize| joined + self.chain.frames.len() <= LONGEST;
        self.chain.joined = joined.filter(fits).unwrap_or_default();
        self.chain.joined > 0
    }

    /// Says that there are more frames than can be followed.
    fn cut(&mut self) -> End {
        self.chain.omitted += 1;
        End::Whole
    }

    /// Whether the frame at `address` is the stand-in that a delegating generator has inside itself.
    fn is_stand_in(&self, spot: Spot, address: u64) -> bool {
        let function = self.snapshot.u64(spot, fixed::FRAME_FUNCTION);
        if function != 0 && function != self.limits.pass_function {
            return false;
        }
        let object = self.snapshot.u64(spot, fixed::FRAME_THIS);
        object < address && address - object < STAND_IN_WITHIN
    }

    /// Adds the frame at `spot`, unless it has no function: PHP 7 puts such a frame under what it calls in the middle of an
    /// instruction. `false` if it changed.
    fn push(&mut self, spot: Spot, address: u64) -> bool {
        let is_leaf = self.chain.len() == 0;
        let [first, second] = self.snapshot.frames(spot, address, self.layout);
        let steady = first.function == second.function && (is_leaf || first.op == second.op);
        if first.function == 0 {
            return steady;
        }
        if self.chain.frames.len() < self.limits.depth {
            self.chain.frames.push(first);
        } else {
            self.chain.omitted += 1;
        }
        steady
    }

    /// Adds the frames of the generators that wait in `yield from`, from the stand-in at `spot` of the one that was
    /// called: the last of them delegates to the generator that runs, whose frame has been added. `false` if it broke.
    fn delegating(&mut self, spot: Spot) -> Result<bool, Error> {
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
            if !self.push(spot, address) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Finds out whether a walk comes back to where it was, with a mark that moves on at every power of two (Brent).
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
