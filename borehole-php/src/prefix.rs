//! What is remembered of the stack before: most of the next is the same.

use borehole_model::StackId;

use crate::chain::RawFrame;
use crate::layout::Layout;
use crate::snapshot::Snapshot;

/// After so many samples, every frame is looked up again, the program's own code as well: at 100 samples a second, what has
/// become wrong is noticed within a second, and what that costs is spread over them.
const TRUSTED_SAMPLES: u32 = 64;

/// How often that is done until steps that no stack has reached meanwhile are forgotten: at 100 samples a second, a program
/// that comes back to deep calls within 40 seconds finds them.
const KEPT_ROUNDS: u32 = 64;

/// How often in a sample a place in another part of memory is searched for among the steps. A few generators and fibers need
/// one each; without an end, frames that lie in alternating parts would cost as many searches as there are, through all steps.
const SEARCHES: u32 = 8;

/// A frame that was there, and the stack up to it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub(crate) raw: RawFrame,
    pub(crate) number: usize,
    /// Whether the frame alone tells that the function is still the same.
    pub(crate) stays: bool,
    pub(crate) stack: Option<StackId>,
    /// The function that it was last seen to call.
    callee: u64,
    /// The deepest of the steps up to this one whose function may have become another.
    doubtful: Option<usize>,
}

impl Step {
    pub(crate) const fn new(raw: RawFrame, number: usize, stays: bool, stack: Option<StackId>) -> Self {
        Self { raw, number, stays, stack, callee: 0, doubtful: None }
    }
}

/// Steps from the root on, each called by the one before. Those that the last stack did not reach stay: the program may come
/// back to them.
#[derive(Debug, Default)]
pub(crate) struct Prefix {
    steps: Vec<Step>,
    /// So many from the root on lead to each other by their own pointers, and end at the root.
    linked: usize,
    generation: u64,
    samples: u32,
    /// Whether the functions of all steps are looked up again.
    distrusts: bool,
    rounds: u32,
    /// How many steps were reached since some were last forgotten.
    reached: usize,
    /// Whether the stack has left the one before, or cannot be remembered any further.
    has_ended: bool,
    /// So many are in this sample what they were.
    standing: usize,
    /// Whether the one behind those is not.
    is_other: bool,
    /// Steps behind this one have been passed on the way from the leaf.
    cursor: usize,
    last_address: u64,
    searches_left: u32,
}

impl Prefix {
    /// Begins a sample. Functions that were known in another `generation` are others now.
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

    /// Whether the functions of all steps are looked up again in this sample.
    pub(crate) fn distrusts(&self) -> bool {
        self.distrusts
    }

    /// Whether the numbers of the functions are of this `generation`.
    pub(crate) fn is_of(&self, generation: u64) -> bool {
        self.generation == generation
    }

    /// Whether the functions of the steps, which are of this `generation`, need not be looked up.
    pub(crate) fn trusts(&self, generation: u64) -> bool {
        self.generation == generation && !self.distrusts
    }

    /// How many steps the stack has up to the frame that called `callee`, if that and all before it are what they were. Asked
    /// for one frame after the other from the leaf on.
    ///
    /// That there is such a way from the root, and leads to such a function, has been seen in two equal copies before. So it is
    /// enough if both copies of `snapshot` show the same functions at the same places, and one of them that they are at the
    /// same instructions: while the other was made, they may not have come so far, or have gone on.
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

    /// Passes the steps that are not at `address`. A stack grows upwards, but parts of it may be elsewhere.
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

    /// Looks how many of the first `count` steps are what they were.
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

    /// The step of which there are so many up to it.
    pub(crate) fn last_of(&self, count: usize) -> Option<&Step> {
        self.steps[..count].last()
    }

    /// The deepest of the first `count` steps whose function may have become another, and how many are before it.
    pub(crate) fn doubtful(&self, count: usize) -> Option<(usize, Step)> {
        let depth = self.last_of(count)?.doubtful?;
        Some((depth, self.steps[depth]))
    }

    /// The frames of the first `count` steps, from the deepest on.
    pub(crate) fn frames(&self, count: usize) -> impl Iterator<Item = RawFrame> {
        self.steps[..count].iter().rev().map(|step| step.raw)
    }

    /// The step at `depth`, which has called `callee`, if it and all before it are what they were.
    pub(crate) fn at(&mut self, depth: usize, raw: &RawFrame, callee: &RawFrame) -> Option<Step> {
        let step = self.steps.get_mut(depth).filter(|step| step.raw == *raw && !self.has_ended)?;
        step.callee = callee.function;
        self.reached = self.reached.max(depth + 1);
        Some(Step { stays: step.stays && !self.distrusts, ..*step })
    }

    /// What comes behind is not remembered, and nothing of what is remembered comes behind.
    pub(crate) fn end(&mut self) {
        self.has_ended = true;
    }

    /// Remembers the step at `depth`, which has called `callee`, in place of those that are there and behind it, if all before
    /// it are remembered.
    pub(crate) fn push(&mut self, depth: usize, mut step: Step, callee: &RawFrame) {
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

    /// Forgets all steps from `depth` on.
    pub(crate) fn truncate(&mut self, depth: usize) {
        self.steps.truncate(depth);
        self.linked = self.linked.min(self.steps.len());
    }
}
