//! Samples of a side by stretches of time.
//!
//! How long the side will be is not known when it begins. So stretches start short, and whenever they do not reach,
//! every two of them become one: memory is a fixed number of sums a stack.

use borehole_model::StackId;

use crate::counts::Waiting;

/// The most stretches that a side is cut into. Once it is longer than a moment there are at least half as many.
pub const BLOCKS: usize = 16;

/// What was counted in each stretch.
pub(crate) type Sums = [f32; BLOCKS];

/// The first width of a stretch in time: a millisecond or so.
const FIRST_WIDTH_NS: u64 = 1 << 20;

/// The stretches of a side.
///
/// Samples come in the order of time, so each stretch has a column of its own: the one that is being counted in is small
/// enough for the cache.
#[derive(Clone, Debug)]
pub(crate) struct Blocks {
    /// By stretch, then by stack.
    sums: [Vec<f32>; BLOCKS],
    /// How long the longest column is: the next one need not grow there step by step.
    stacks: usize,
    /// Samples of one stretch that are not in its column yet.
    waiting: Waiting,
    /// Which stretch that is.
    current: usize,
    /// How far a stretch reaches, in positions.
    width: u64,
    /// One more than the last position that was used.
    end: u64,
    samples: [f64; BLOCKS],
    labels: [f64; BLOCKS],
}

impl Blocks {
    /// Stretches of time, or of numbers of samples, or of inputs.
    pub(crate) const fn new(of_time: bool) -> Self {
        let width = if of_time { FIRST_WIDTH_NS } else { 1 };
        Self {
            sums: [const { Vec::new() }; BLOCKS],
            stacks: 0,
            waiting: Waiting::new(),
            current: 0,
            width,
            end: 0,
            samples: [0.0; BLOCKS],
            labels: [0.0; BLOCKS],
        }
    }

    /// Counts `count` samples at one position.
    #[inline]
    pub(crate) fn add(&mut self, stack: Option<StackId>, position: u64, count: u64) {
        let block = self.block(position);
        self.put(stack, block, count);
    }

    /// Counts `count` samples at as many positions from `position` on.
    pub(crate) fn spread(&mut self, stack: Option<StackId>, position: u64, count: u64) {
        let last = position.saturating_add(count.saturating_sub(1));
        self.block(last);
        let mut from = position;
        while from <= last {
            let block = self.block(from);
            let block_end = (from / self.width).saturating_add(1).saturating_mul(self.width);
            let until = block_end.min(last.saturating_add(1));
            self.put(stack, block, until - from);
            if until == u64::MAX || until == from {
                break;
            }
            from = until;
        }
    }

    /// Counts a value of the label that was not met before.
    pub(crate) fn label(&mut self, position: u64) {
        let block = self.block(position);
        self.labels[block] += 1.0;
    }

    // As below.
    #[expect(clippy::cast_precision_loss)]
    #[inline]
    fn put(&mut self, stack: Option<StackId>, block: usize, count: u64) {
        self.samples[block] += count as f64;
        let Some(stack) = stack else { return };
        if block != self.current {
            self.settle();
            self.current = block;
        }
        if self.waiting.push(stack, count) {
            self.settle();
        }
    }

    /// Counts what waits.
    // Sums are what variation is judged by: seven digits are plenty.
    #[expect(clippy::cast_precision_loss)]
    pub(crate) fn settle(&mut self) {
        let sums = &mut self.sums[self.current];
        for (stack, count) in self.waiting.drain() {
            if stack.index() >= sums.len() {
                self.stacks = self.stacks.max(stack.index() + 1);
                sums.resize(self.stacks, 0.0);
            }
            sums[stack.index()] += count as f32;
        }
    }

    #[inline]
    fn block(&mut self, position: u64) -> usize {
        self.end = self.end.max(position.saturating_add(1));
        loop {
            match usize::try_from(position / self.width) {
                Ok(block) if block < BLOCKS => return block,
                _ => self.halve(),
            }
        }
    }

    #[cold]
    fn halve(&mut self) {
        self.settle();
        self.width = self.width.saturating_mul(2);
        let mut sums = std::mem::take(&mut self.sums).into_iter();
        self.sums = std::array::from_fn(|_| match (sums.next(), sums.next()) {
            (Some(one), Some(other)) => joined(one, other),
            _ => Vec::new(),
        });
        self.samples = pairs(&self.samples, 0.0, |one, other| one + other);
        self.labels = pairs(&self.labels, 0.0, |one, other| one + other);
    }

    /// One more than the last position that was used.
    pub(crate) const fn end(&self) -> u64 {
        self.end
    }

    /// How many stretches there are.
    pub(crate) fn used(&self) -> usize {
        usize::try_from(self.end.div_ceil(self.width)).unwrap_or(BLOCKS).min(BLOCKS)
    }

    /// What a stack has in each stretch, once all is settled.
    pub(crate) fn of(&self, stack: StackId) -> Sums {
        self.sums.each_ref().map(|sums| sums.get(stack.index()).copied().unwrap_or(0.0))
    }

    /// All samples of each stretch.
    pub(crate) const fn samples(&self) -> &[f64; BLOCKS] {
        &self.samples
    }

    /// New values of the label in each stretch.
    pub(crate) const fn labels(&self) -> &[f64; BLOCKS] {
        &self.labels
    }

    /// How many positions each stretch has.
    // As above.
    #[expect(clippy::cast_precision_loss)]
    pub(crate) fn positions(&self) -> [f64; BLOCKS] {
        std::array::from_fn(|block| {
            let from = self.width.saturating_mul(block as u64);
            self.end.saturating_sub(from).min(self.width) as f64
        })
    }
}

/// What either has, together.
fn joined(one: Vec<f32>, other: Vec<f32>) -> Vec<f32> {
    let (mut longer, shorter) = if one.len() < other.len() { (other, one) } else { (one, other) };
    longer.iter_mut().zip(shorter).for_each(|(sum, more)| *sum += more);
    longer
}

/// Every two neighbours as one, in the first half.
fn pairs<T: Copy>(of: &[T; BLOCKS], empty: T, join: impl Fn(T, T) -> T) -> [T; BLOCKS] {
    std::array::from_fn(|block| of.get(2 * block..2 * block + 2).map_or(empty, |pair| join(pair[0], pair[1])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stretches_double_when_they_do_not_reach() {
        let mut blocks = Blocks::new(false);
        for position in 0..100 {
            blocks.add(None, position, 2);
        }
        assert_eq!((blocks.width, blocks.used()), (8, 13));
        assert_eq!(blocks.samples[..13], [[16.0; 12].as_slice(), &[8.0]].concat());
        assert_eq!(blocks.positions()[11..14], [8.0, 4.0, 0.0]);
    }

    #[test]
    fn a_run_is_spread_without_a_step_for_each_sample() {
        let mut blocks = Blocks::new(false);
        blocks.spread(None, 3, 1 << 40);
        assert_eq!(blocks.samples.iter().sum::<f64>(), (1_u64 << 40) as f64);
        assert!(blocks.used() > BLOCKS / 2, "{blocks:?}");
        let mut whole = Blocks::new(false);
        whole.spread(None, 5, u64::MAX);
        assert!(whole.used() >= BLOCKS / 2);
    }
}
