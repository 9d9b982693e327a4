//! The part of a stack, counted from the root, that was the same in the sample before.

use borehole_model::StackId;

use crate::chain::RawFrame;

/// After so many samples, every frame is looked up again, the program's own code as well.
const TRUSTED_SAMPLES: u32 = 64;

/// A frame that was there, and the stack up to it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub(crate) raw: RawFrame,
    pub(crate) number: usize,
    /// Whether the frame alone tells that the function is still the same.
    pub(crate) stays: bool,
    pub(crate) stack: Option<StackId>,
}

/// The steps of the sample before, from the root.
#[derive(Debug, Default)]
pub(crate) struct Prefix {
    steps: Vec<Step>,
    generation: u64,
    samples: u32,
    /// Whether the stack has left the one before, or cannot be remembered any further.
    has_ended: bool,
}

impl Prefix {
    /// Begins a sample. Functions that were known in another `generation` are others now.
    pub(crate) fn begin(&mut self, generation: u64) {
        self.samples += 1;
        if generation != self.generation || self.samples > TRUSTED_SAMPLES {
            self.steps.clear();
            self.samples = 0;
        }
        self.generation = generation;
        self.has_ended = false;
    }

    /// The step at `depth`, if it and all before it are what they were.
    pub(crate) fn at(&mut self, depth: usize, raw: &RawFrame) -> Option<Step> {
        let step = self.steps.get(depth).copied().filter(|step| step.raw == *raw);
        if step.is_none() {
            self.steps.truncate(depth);
        }
        step
    }

    /// Nothing is remembered from here on.
    pub(crate) fn end(&mut self) {
        self.has_ended = true;
    }

    /// Remembers the step at `depth`, if all before it are.
    pub(crate) fn push(&mut self, depth: usize, step: Step) {
        self.steps.truncate(depth);
        if !self.has_ended && self.steps.len() == depth {
            self.steps.push(step);
        }
    }
}
