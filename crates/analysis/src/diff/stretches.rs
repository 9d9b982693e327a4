//! Samples of a side, divided into stretches.
//!
//! The length of a side is unknown when it begins. So stretches start short, and when there are too few, every two of
//! them are merged into one. Memory is a fixed number of sums per stack.

use borehole_model::StackId;

use crate::counts::{SampleBatch, StackTallies};

/// The maximum number of stretches of a side. All but very short sides have at least half as many.
pub const STRETCHES: usize = 16;

/// The count in each stretch.
pub(crate) type StretchSums = [f32; STRETCHES];

/// The initial width of a stretch of time as a power of two of nanoseconds: about a millisecond.
const FIRST_WIDTH_LOG2: u32 = 20;

/// The number of stacks that are assembled from the columns at a time.
const PIECE: usize = 256;

/// The stretches of a side.
///
/// Samples arrive in order of time, so each stretch has a column of its own: the one being counted is small enough for
/// the cache.
#[derive(Clone, Debug, Default)]
pub(crate) struct SideStretches {
    /// All samples by stack.
    pub(crate) counts: StackTallies,
    /// By stretch, then by the place of the stack in `counts`.
    sums: [Vec<f32>; STRETCHES],
    /// The length of the longest column, so that the next one does not have to grow step by step.
    stacks: usize,
    /// Samples of the current stretch that are not yet counted.
    waiting: SampleBatch,
    /// The current stretch.
    current: usize,
    /// The width of a stretch in positions, as a power of two.
    width_log2: u32,
    /// One more than the last position used.
    pub(crate) end: u64,
    /// All samples of each stretch.
    pub(crate) samples: [f64; STRETCHES],
    /// The number of new label values in each stretch.
    pub(crate) labels: [f64; STRETCHES],
}

impl SideStretches {
    /// Creates stretches of time, of numbers of samples, or of inputs.
    pub(crate) fn new(of_time: bool) -> Self {
        Self { width_log2: if of_time { FIRST_WIDTH_LOG2 } else { 0 }, ..Self::default() }
    }

    /// Counts `count` samples at one position.
    #[inline]
    pub(crate) fn add(&mut self, stack: Option<StackId>, position: u64, count: u64) {
        let stretch = self.stretch(position);
        self.put(stack, stretch, count);
    }

    /// Counts `count` samples at as many consecutive positions, starting at `position`.
    pub(crate) fn spread(&mut self, stack: Option<StackId>, position: u64, count: u64) {
        let last = position.saturating_add(count.saturating_sub(1));
        self.stretch(last);
        let (mut from, mut left) = (position, count);
        while left > 0 {
            let stretch = self.stretch(from);
            let room = self.width() - from % self.width();
            // At the end of the range of positions, all remaining samples are in the last stretch.
            let part = if from.checked_add(room).is_some() { left.min(room) } else { left };
            self.put(stack, stretch, part);
            left -= part;
            from = from.saturating_add(part);
        }
    }

    /// Counts a new value of the label.
    pub(crate) fn label(&mut self, position: u64) {
        let stretch = self.stretch(position);
        self.labels[stretch] += 1.0;
    }

    // As below.
    #[expect(clippy::cast_precision_loss)]
    #[inline]
    fn put(&mut self, stack: Option<StackId>, stretch: usize, count: u64) {
        self.samples[stretch] += count as f64;
        let Some(stack) = stack else { return };
        if stretch != self.current {
            self.settle();
            self.current = stretch;
        }
        if self.waiting.push(stack, count) {
            self.settle();
        }
    }

    /// Counts waiting samples.
    // The sums serve to estimate variation only, so seven digits are enough.
    #[expect(clippy::cast_precision_loss)]
    pub(crate) fn settle(&mut self) {
        let sums = &mut self.sums[self.current];
        for (stack, count) in self.waiting.drain() {
            let place = self.counts.count(stack, count);
            if place >= sums.len() {
                self.stacks = self.stacks.max(place + 1);
                sums.resize(self.stacks, 0.0);
            }
            sums[place] += count as f32;
        }
    }

    /// The width of a stretch in positions.
    const fn width(&self) -> u64 {
        1 << self.width_log2
    }

    #[inline]
    fn stretch(&mut self, position: u64) -> usize {
        self.end = self.end.max(position.saturating_add(1));
        loop {
            match usize::try_from(position >> self.width_log2) {
                Ok(stretch) if stretch < STRETCHES => return stretch,
                _ => self.halve(),
            }
        }
    }

    #[cold]
    fn halve(&mut self) {
        self.settle();
        self.width_log2 += 1;
        let mut halves = std::mem::take(&mut self.sums);
        for stretch in 0..STRETCHES / 2 {
            let [one, other] = [2 * stretch, 2 * stretch + 1].map(|half| std::mem::take(&mut halves[half]));
            // One of the two columns is then empty, and is reused.
            (self.sums[stretch], self.sums[STRETCHES / 2 + stretch]) = joined(one, other);
        }
        self.samples = pairs(&self.samples);
        self.labels = pairs(&self.labels);
    }

    /// The number of stretches in use.
    pub(crate) fn used(&self) -> usize {
        usize::try_from(self.end.div_ceil(self.width())).unwrap_or(STRETCHES).min(STRETCHES)
    }

    /// The counts of each sampled stack in each stretch, in the order of `counts`. Complete after `settle`.
    pub(crate) fn rows(&self) -> Vec<StretchSums> {
        let mut rows = vec![[0.0; STRETCHES]; self.counts.len()];
        // In pieces that stay in the cache until all columns are copied.
        for (piece, rows) in rows.chunks_mut(PIECE).enumerate() {
            for (stretch, sums) in self.sums.iter().enumerate() {
                let sums = sums.get(piece * PIECE..).unwrap_or_default();
                rows.iter_mut().zip(sums).for_each(|(row, &sum)| row[stretch] = sum);
            }
        }
        rows
    }

    /// The number of positions in each stretch.
    // As above.
    #[expect(clippy::cast_precision_loss)]
    pub(crate) fn positions(&self) -> [f64; STRETCHES] {
        std::array::from_fn(|stretch| {
            let from = self.width().saturating_mul(stretch as u64);
            self.end.saturating_sub(from).min(self.width()) as f64
        })
    }
}

/// The sums of both columns, and an empty column.
fn joined(one: Vec<f32>, other: Vec<f32>) -> (Vec<f32>, Vec<f32>) {
    let (mut longer, mut shorter) = if one.len() < other.len() { (other, one) } else { (one, other) };
    longer.iter_mut().zip(shorter.drain(..)).for_each(|(sum, more)| *sum += more);
    (longer, shorter)
}

/// The sums of every two neighbours, in the first half of the result.
fn pairs(of: &[f64; STRETCHES]) -> [f64; STRETCHES] {
    std::array::from_fn(|stretch| of.get(2 * stretch..2 * stretch + 2).map_or(0.0, |pair| pair[0] + pair[1]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stretches_double_when_they_do_not_reach() {
        let mut stretches = SideStretches::new(false);
        for position in 0..100 {
            stretches.add(None, position, 2);
        }
        assert_eq!((stretches.width(), stretches.used()), (8, 13));
        assert_eq!(stretches.samples[..13], [[16.0; 12].as_slice(), &[8.0]].concat());
        assert_eq!(stretches.positions()[11..14], [8.0, 4.0, 0.0]);
    }

    #[test]
    fn a_run_is_spread_without_a_step_for_each_sample() {
        let mut stretches = SideStretches::new(false);
        stretches.spread(None, 3, 1 << 40);
        assert_eq!(stretches.samples.iter().sum::<f64>(), (1_u64 << 40) as f64);
        assert!(stretches.used() > STRETCHES / 2, "{stretches:?}");
        let mut whole = SideStretches::new(false);
        whole.spread(None, 5, u64::MAX);
        assert!(whole.used() >= STRETCHES / 2);
    }
}
