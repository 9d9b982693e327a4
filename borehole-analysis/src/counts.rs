//! Samples added up per stack: what happens for each sample.

use std::ops::AddAssign;

use borehole_model::StackId;

/// How often, and for how long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) count: u64,
    pub(crate) wall_ns: u128,
}

impl Tally {
    /// `count` samples that stand for `period_ns` each. The product of two 64-bit numbers fits.
    #[inline]
    pub(crate) fn of(count: u64, period_ns: u64) -> Self {
        Self { count, wall_ns: u128::from(count) * u128::from(period_ns) }
    }
}

impl AddAssign for Tally {
    #[inline]
    fn add_assign(&mut self, other: Self) {
        self.count = self.count.saturating_add(other.count);
        self.wall_ns = self.wall_ns.saturating_add(other.wall_ns);
    }
}

/// Samples that wait to be counted together: then the processor fetches what one adds to while it waits for another's.
#[derive(Clone, Debug, Default)]
pub(crate) struct Waiting(Vec<(StackId, u64)>);

impl Waiting {
    const MOST: usize = 256;

    pub(crate) const fn new() -> Self {
        Self(Vec::new())
    }

    /// Whether there is no room for another one then.
    #[inline]
    pub(crate) fn push(&mut self, stack: StackId, count: u64) -> bool {
        self.0.push((stack, count));
        self.0.len() >= Self::MOST
    }

    pub(crate) fn drain(&mut self) -> impl Iterator<Item = (StackId, u64)> {
        self.0.drain(..)
    }
}

/// Samples per stack, and the order in which stacks were first sampled.
///
/// A sample is one addition in a column of eight bytes a stack. Time is worked out when the period changes,
/// for the stacks that were sampled since it last did: at most once a sample, mostly once a profile.
#[derive(Clone, Debug, Default)]
pub(crate) struct StackCounts {
    waiting: Waiting,
    pending: Vec<u64>,
    touched: Vec<StackId>,
    /// By stack, one more than the place of its tally; 0 for those that were not sampled, which are most.
    places: Vec<u32>,
    tallies: Vec<(StackId, Tally)>,
}

impl StackCounts {
    /// Adds `count` samples, which are not 0, of the period that the next [`StackCounts::settle`] names.
    #[inline]
    pub(crate) fn add(&mut self, stack: StackId, count: u64) {
        if self.waiting.push(stack, count) {
            self.count_waiting();
        }
    }

    #[cold]
    fn count_waiting(&mut self) {
        let mut waiting = std::mem::take(&mut self.waiting);
        waiting.drain().for_each(|(stack, count)| self.count(stack, count));
        self.waiting = waiting;
    }

    #[inline]
    fn count(&mut self, stack: StackId, count: u64) {
        let row = stack.index();
        if row >= self.pending.len() {
            self.pending.resize(row + 1, 0);
        }
        let sum = &mut self.pending[row];
        if *sum == 0 {
            self.touched.push(stack);
        }
        *sum = sum.saturating_add(count);
    }

    /// All samples since the last call are of one period.
    pub(crate) fn settle(&mut self, period_ns: u64) {
        self.count_waiting();
        self.places.resize(self.pending.len(), 0);
        for stack in self.touched.drain(..) {
            let place = &mut self.places[stack.index()];
            if *place == 0 {
                self.tallies.push((stack, Tally::default()));
                // There are not more than stacks, whose numbers fit.
                *place = u32::try_from(self.tallies.len()).unwrap_or(u32::MAX);
            }
            let (_, tally) = &mut self.tallies[*place as usize - 1];
            *tally += Tally::of(std::mem::take(&mut self.pending[stack.index()]), period_ns);
        }
    }

    /// The stacks that were sampled, callers before what they call, once all is settled.
    pub(crate) fn in_order(&self) -> Vec<StackId> {
        let mut stacks: Vec<_> = self.tallies.iter().map(|&(stack, _)| stack).collect();
        stacks.sort_unstable();
        stacks
    }

    /// The stacks that were sampled with their tallies, in order of first appearance, once all is settled.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (StackId, Tally)> {
        self.tallies.iter().copied()
    }
}
