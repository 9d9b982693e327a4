//! Samples added up per stack: the work done for each sample.

use borehole_model::StackId;

use crate::call_paths::Summable;

/// A count, and the time of samples or the sum of their values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) count: u64,
    pub(crate) value: i128,
}

impl Tally {
    /// `count` samples that stand for `period_ns` each.
    #[inline]
    pub(crate) fn of(count: u64, period_ns: u64) -> Self {
        let time_ns = u128::from(count) * u128::from(period_ns);
        Self { count, value: i128::try_from(time_ns).unwrap_or(i128::MAX) }
    }
}

impl Summable for Tally {
    #[inline]
    fn add(&mut self, other: Self) {
        self.count = self.count.saturating_add(other.count);
        self.value = self.value.saturating_add(other.value);
    }
}

/// Samples held back to be counted in batches, so that the processor can prefetch the memory of one while it waits for
/// another's.
#[derive(Clone, Debug, Default)]
pub(crate) struct SampleBatch(Vec<(StackId, u64)>);

impl SampleBatch {
    const MOST: usize = 256;

    /// Adds samples. Returns whether the batch is full.
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
/// Most stacks are only callers of sampled ones. So each sampled stack has a place of its own, and a sample is one
/// addition there. Time is computed when the period changes, for the stacks sampled since the last change: at most once
/// per sample, usually never.
#[derive(Clone, Debug, Default)]
pub(crate) struct StackTallies {
    waiting: SampleBatch,
    /// By stack, one more than its place; 0 if it was not sampled.
    places: Vec<u32>,
    // The following columns are by place.
    stacks: Vec<StackId>,
    /// Samples of the current period.
    pending: Vec<u64>,
    /// Sums of earlier periods. Usually there are none.
    settled: Vec<Tally>,
    /// The places that have pending samples.
    touched: Vec<u32>,
    /// The period of the pending samples, once known.
    period_ns: u64,
}

impl StackTallies {
    /// Adds `count` samples, which must not be 0, of the period that the next [`StackTallies::settle`] names.
    #[inline]
    pub(crate) fn add(&mut self, stack: StackId, count: u64) {
        if self.waiting.push(stack, count) {
            self.count_waiting();
        }
    }

    #[cold]
    fn count_waiting(&mut self) {
        let mut waiting = std::mem::take(&mut self.waiting);
        for (stack, count) in waiting.drain() {
            self.count(stack, count);
        }
        self.waiting = waiting;
    }

    /// Like [`StackTallies::add`], but counts immediately. Returns the place of the stack.
    #[inline]
    pub(crate) fn count(&mut self, stack: StackId, count: u64) -> usize {
        let place = self.place(stack);
        let sum = &mut self.pending[place as usize];
        if *sum == 0 {
            self.touched.push(place);
        }
        *sum = sum.saturating_add(count);
        place as usize
    }

    #[inline]
    fn place(&mut self, stack: StackId) -> u32 {
        match self.places.get(stack.index()) {
            Some(&place) if place > 0 => place - 1,
            _ => self.new_place(stack),
        }
    }

    #[cold]
    fn new_place(&mut self, stack: StackId) -> u32 {
        if stack.index() >= self.places.len() {
            self.places.resize(stack.index() + 1, 0);
        }
        self.stacks.push(stack);
        self.pending.push(0);
        // There are no more places than stacks, whose numbers fit.
        let place = u32::try_from(self.stacks.len()).unwrap_or(u32::MAX);
        self.places[stack.index()] = place;
        place - 1
    }

    /// Assigns a period to all samples since the last call; the following ones have another.
    pub(crate) fn settle(&mut self, period_ns: u64) {
        self.count_waiting();
        self.settled.resize(self.stacks.len(), Tally::default());
        for place in self.touched.drain(..) {
            let count = std::mem::take(&mut self.pending[place as usize]);
            self.settled[place as usize].add(Tally::of(count, period_ns));
        }
    }

    /// Assigns a period to all samples since the last call, after the last sample.
    pub(crate) fn finish(&mut self, period_ns: u64) {
        self.count_waiting();
        self.period_ns = period_ns;
    }

    /// Adds a tally that needs no period, after all samples so far.
    pub(crate) fn add_tally(&mut self, stack: StackId, tally: Tally) {
        self.count_waiting();
        let place = self.place(stack) as usize;
        if place >= self.settled.len() {
            self.settled.resize(self.stacks.len(), Tally::default());
        }
        self.settled[place].add(tally);
    }

    pub(crate) const fn len(&self) -> usize {
        self.stacks.len()
    }

    /// The sampled stacks with their tallies, in order of places, which is that of first appearance. Complete once no
    /// samples are waiting.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (StackId, Tally)> + Clone {
        self.stacks.iter().enumerate().map(|(place, &stack)| (stack, self.tally_at(place)))
    }

    /// Returns the tally of a stack, once all samples are counted.
    pub(crate) fn tally(&self, stack: StackId) -> Tally {
        let place = self.places.get(stack.index()).and_then(|place| place.checked_sub(1));
        place.map_or_else(Tally::default, |place| self.tally_at(place as usize))
    }

    fn tally_at(&self, place: usize) -> Tally {
        let mut tally = self.settled.get(place).copied().unwrap_or_default();
        tally.add(Tally::of(self.pending[place], self.period_ns));
        tally
    }
}
