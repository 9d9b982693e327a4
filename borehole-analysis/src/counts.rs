//! Samples added up per stack: what happens for each sample.

use borehole_model::StackId;

use crate::call_paths::Summable;

/// How often, and how much: the time of samples, or the sum of their values.
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
/// Most stacks are only callers of sampled ones, so a sampled one has a place among those, and a sample is one addition
/// there. Time is worked out when the period changes, for the stacks that were sampled since it last did: at most once a
/// sample, mostly never.
#[derive(Clone, Debug, Default)]
pub(crate) struct StackCounts {
    waiting: Waiting,
    /// By stack, one more than its place; 0 for those that were not sampled.
    places: Vec<u32>,
    // From here on by place.
    stacks: Vec<StackId>,
    /// Samples of the period that was met last.
    pending: Vec<u64>,
    /// All of other periods. Mostly there is no other.
    settled: Vec<Tally>,
    /// The places of what is pending.
    touched: Vec<u32>,
    /// The period of what is pending, once that is known.
    period_ns: u64,
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
        for (stack, count) in waiting.drain() {
            self.count(stack, count);
        }
        self.waiting = waiting;
    }

    /// The same as [`StackCounts::add`], at once. Answers the place of the stack.
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
        // There are not more than stacks, whose numbers fit.
        let place = u32::try_from(self.stacks.len()).unwrap_or(u32::MAX);
        self.places[stack.index()] = place;
        place - 1
    }

    /// All samples since the last call are of one period; the next ones are of another.
    pub(crate) fn settle(&mut self, period_ns: u64) {
        self.count_waiting();
        self.settled.resize(self.stacks.len(), Tally::default());
        for place in self.touched.drain(..) {
            let count = std::mem::take(&mut self.pending[place as usize]);
            self.settled[place as usize].add(Tally::of(count, period_ns));
        }
    }

    /// All samples since the last call are of one period, and there are no more.
    pub(crate) fn finish(&mut self, period_ns: u64) {
        self.count_waiting();
        self.period_ns = period_ns;
    }

    /// Adds what needs no period, after all samples so far.
    pub(crate) fn add_tally(&mut self, stack: StackId, tally: Tally) {
        self.count_waiting();
        let place = self.place(stack) as usize;
        if place >= self.settled.len() {
            self.settled.resize(self.stacks.len(), Tally::default());
        }
        self.settled[place].add(tally);
    }

    /// How many stacks were sampled.
    pub(crate) const fn len(&self) -> usize {
        self.stacks.len()
    }

    /// The stacks that were sampled with their tallies, in order of first appearance, which is that of their places, once
    /// all is counted.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (StackId, Tally)> + Clone {
        self.stacks.iter().enumerate().map(|(place, &stack)| (stack, self.tally_at(place)))
    }

    fn tally_at(&self, place: usize) -> Tally {
        let mut tally = self.settled.get(place).copied().unwrap_or_default();
        tally.add(Tally::of(self.pending[place], self.period_ns));
        tally
    }
}
