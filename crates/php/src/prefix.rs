//! Caches the previous stack, because most of the next one is equal.

use borehole_model::StackId;

use crate::layout::Layout;
use crate::snapshot::{RawFrame, Snapshot};

/// The number of samples after which every frame is looked up again, including the program's own code. At 100 samples a second,
/// errors are noticed within a second, and the cost is spread over these samples.
const TRUSTED_SAMPLES: u32 = 64;

/// The number of such rounds after which steps that no stack has reached meanwhile are forgotten. At 100 samples a second, a
/// program that returns to deep calls within 40 seconds still finds them.
const KEPT_ROUNDS: u32 = 64;

/// The maximum number of searches among the steps per sample, for places in other parts of memory. A few generators and fibers
/// need one each. Without a limit, frames in alternating parts would each cost a search through all steps.
const SEARCHES: u32 = 8;

/// A cached frame, with the stack up to it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CachedFrame {
    pub(crate) raw: RawFrame,
    pub(crate) number: usize,
    /// Whether the frame alone proves that the function is unchanged.
    pub(crate) stays: bool,
    pub(crate) stack: Option<StackId>,
    /// The function that it was last seen to call.
    callee: u64,
    /// The deepest step up to this one whose function may have changed.
    doubtful: Option<usize>,
}

impl CachedFrame {
    pub(crate) const fn new(raw: RawFrame, number: usize, stays: bool, stack: Option<StackId>) -> Self {
        Self { raw, number, stays, stack, callee: 0, doubtful: None }
    }
}

/// The steps from the root on, each called by the one before. Steps that the last stack did not reach are kept, because the
/// program may return to them.
#[derive(Debug, Default)]
pub(crate) struct Prefix {
    steps: Vec<CachedFrame>,
    /// The number of steps, from the root on, that are linked by their own pointers up to the root.
    linked: usize,
    /// That of the function numbers.
    pub(crate) generation: u64,
    samples: u32,
    /// Whether the functions of all steps are looked up again in this sample.
    pub(crate) distrusts: bool,
    rounds: u32,
    /// The number of steps reached since some were last forgotten.
    reached: usize,
    /// Whether the stack has diverged from the cached one, or can no longer be cached: what follows is not cached, and no
    /// cached step follows.
    pub(crate) has_ended: bool,
    /// The number of steps that are unchanged in this sample.
    standing: usize,
    /// Whether the step after those has changed.
    is_other: bool,
    /// Steps from this one on have been passed on the way from the leaf.
    cursor: usize,
    last_address: u64,
    searches_left: u32,
}

impl Prefix {
    /// Begins a sample. Forgets all steps if the function numbers are of another `generation`.
    pub(crate) fn begin(&mut self, generation: u64) {
        self.samples += 1;
        self.distrusts = self.samples > TRUSTED_SAMPLES;
        if self.distrusts {
            self.samples = 0;
            self.rounds += 1;
        }
        if self.rounds >= KEPT_ROUNDS {
            self.rounds = 0;
            self.truncate(self.reached);
            self.reached = 0;
        }
        if generation != self.generation {
            self.truncate(0);
        }
        self.generation = generation;
        self.has_ended = false;
        self.standing = 0;
        self.is_other = false;
        self.cursor = self.linked;
        self.last_address = u64::MAX;
        self.searches_left = SEARCHES;
    }

    /// The number of steps up to the frame that called `callee`, if that frame and all before it are unchanged. Called for one
    /// frame after the other, from the leaf on.
    ///
    /// Two equal copies have already shown that this path from the root exists and leads to such a function. So it is enough if
    /// both copies of `snapshot` show the same functions at the same places, and at least one shows them at the same
    /// instructions: in the other copy, they may not have got there yet or may have moved on.
    pub(crate) fn join(
        &mut self,
        snapshot: &mut Snapshot,
        callee: &RawFrame,
        address: u64,
        layout: &Layout,
    ) -> Option<usize> {
        self.turn_to(address);
        let depth = self.cursor.checked_sub(1)?;
        if self.steps[depth].raw.address != address {
            return None;
        }
        self.stand(snapshot, depth + 1, layout);
        self.reached = self.reached.max(self.standing);
        let step = &mut self.steps[depth];
        if self.standing <= depth || (step.callee != callee.function && !snapshot.rests(&step.raw, layout)) {
            return None;
        }
        step.callee = callee.function;
        Some(depth + 1)
    }

    /// Skips the steps that are not at `address`. A stack grows upwards, but parts of it may be elsewhere.
    fn turn_to(&mut self, address: u64) {
        let goes_up = std::mem::replace(&mut self.last_address, address) < address;
        if goes_up && self.searches_left > 0 {
            self.searches_left -= 1;
            let found = self.steps[..self.linked].iter().rposition(|step| step.raw.address == address);
            self.cursor = found.map_or(0, |depth| depth + 1);
        }
        while let Some(depth) = self.cursor.checked_sub(1)
            && self.steps[depth].raw.address > address
        {
            self.cursor = depth;
        }
    }

    /// Determines how many of the first `count` steps are unchanged.
    fn stand(&mut self, snapshot: &mut Snapshot, count: usize, layout: &Layout) {
        if self.is_other || self.standing >= count {
            return;
        }
        let steps = &self.steps[self.standing..count];
        let frames = steps.iter().map(|step| &step.raw);
        let standing = snapshot.count_standing(frames, layout);
        self.is_other = standing < steps.len();
        self.standing += standing;
    }

    pub(crate) fn last_of(&self, count: usize) -> Option<&CachedFrame> {
        self.steps[..count].last()
    }

    /// The deepest of the first `count` steps whose function may have changed, and the number of steps before it.
    pub(crate) fn doubtful(&self, count: usize) -> Option<(usize, CachedFrame)> {
        let depth = self.last_of(count)?.doubtful?;
        Some((depth, self.steps[depth]))
    }

    /// The frames of the first `count` steps, deepest first.
    pub(crate) fn frames(&self, count: usize) -> impl Iterator<Item = RawFrame> {
        self.steps[..count].iter().rev().map(|step| step.raw)
    }

    /// The step at `depth`, which called `callee`, if it and all before it are unchanged.
    pub(crate) fn at(&mut self, depth: usize, raw: &RawFrame, callee: &RawFrame) -> Option<CachedFrame> {
        let step = self.steps.get_mut(depth).filter(|step| step.raw == *raw && !self.has_ended)?;
        step.callee = callee.function;
        self.reached = self.reached.max(depth + 1);
        Some(CachedFrame { stays: step.stays && !self.distrusts, ..*step })
    }

    /// Caches the step at `depth`, which called `callee`, replacing cached steps from there on, if all steps before it are
    /// cached.
    pub(crate) fn push(&mut self, depth: usize, mut step: CachedFrame, callee: &RawFrame) {
        if self.has_ended || self.steps.len() < depth {
            return;
        }
        self.truncate(depth);
        step.callee = callee.function;
        let before = self.steps.last();
        step.doubtful = if step.stays { before.and_then(|before| before.doubtful) } else { Some(depth) };
        let leads_to = before.map_or(0, |before| before.raw.address);
        if self.linked == depth && step.raw.previous == leads_to {
            self.linked += 1;
        }
        self.steps.push(step);
        self.reached = self.reached.max(self.steps.len());
    }

    pub(crate) fn truncate(&mut self, depth: usize) {
        self.steps.truncate(depth);
        self.linked = self.linked.min(self.steps.len());
    }
}
