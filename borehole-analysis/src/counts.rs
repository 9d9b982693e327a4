//! Samples added up per stack: the one thing that happens for each sample.

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

/// A column of tallies beside the table of stacks, and the order in which stacks were first sampled.
#[derive(Clone, Debug, Default)]
pub(crate) struct StackCounts {
    tallies: Vec<Tally>,
    first_seen: Vec<StackId>,
}

impl StackCounts {
    /// Adds a tally, whose count is not 0.
    #[inline]
    pub(crate) fn add(&mut self, stack: StackId, tally: Tally) {
        let row = stack.index();
        if row >= self.tallies.len() {
            self.tallies.resize(row + 1, Tally::default());
        }
        if self.tallies[row].count == 0 {
            self.first_seen.push(stack);
        }
        self.tallies[row] += tally;
    }

    /// The stacks that were sampled with their tallies, in order of first appearance.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (StackId, Tally)> {
        self.first_seen.iter().map(|&stack| (stack, self.tallies[stack.index()]))
    }
}
