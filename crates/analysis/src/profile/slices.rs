//! Samples counted per stack, situation and slice of time.
//!
//! Constraints: the width of a slice in nanoseconds is a power of two, so that the slice of a time is a shift. There
//! are at most [`MOST_SLICES`]; their width doubles when the covered time needs more, or when there are too many rows.
//! So memory is bounded by the distinct pairs, whatever the number of samples and however their clock runs.

use std::hash::BuildHasher as _;

use borehole_model::StackId;
use hashbrown::{DefaultHashBuilder, HashTable};

use super::situations::SituationId;

/// The maximum number of slices: several for each column of a wide terminal. At least half of them are in use once a
/// profile is longer than [`MOST_SLICES`] of the narrowest.
pub(crate) const MOST_SLICES: i64 = 2048;

/// The narrowest slice is 2^20 ns, about a millisecond; few profilers sample much faster.
const FIRST_SHIFT: u32 = 20;

/// The maximum number of rows before slices become wider, unless there are very many pairs: 128 MiB.
const MOST_ROWS: usize = 1 << 23;

/// The number of rows that each pair may always have.
const ROWS_PER_PAIR: usize = 4;

/// Marks a pair without a row. It has no slice either, because no time has a slice that low.
const NO_ROW: (i64, usize) = (i64::MIN, usize::MAX);

/// A stack in a situation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pair {
    pub(crate) stack: StackId,
    pub(crate) situation: SituationId,
    pub(crate) sum: i64,
    /// The slice and index of its last row, to tell without reading the rows whether a sample needs a new one.
    last_row: (i64, usize),
}

/// Samples of a pair in a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SliceRow {
    pub(crate) pair: usize,
    pub(crate) slice: i64,
    pub(crate) sum: i64,
}

/// A sample, or a run of equal ones.
#[derive(Clone, Copy, Debug)]
struct TimedSample {
    stack: StackId,
    situation: SituationId,
    time_ns: Option<i64>,
    sum: i64,
}

/// The number of samples counted in one batch, so that the processor can prefetch the pair of one while it waits for
/// another's.
const WAITING: usize = 256;

/// Counts samples per pair and slice.
#[derive(Clone, Debug)]
pub(crate) struct SliceCounts {
    waiting: Vec<TimedSample>,
    /// Complete after `settle`.
    pub(crate) pairs: Vec<Pair>,
    /// By stack: one more than its first pair; 0 if it has none. Further pairs of a stack are in `index`.
    first_pair: Vec<u32>,
    index: HashTable<usize>,
    hasher: DefaultHashBuilder,
    /// The samples with a known time. After `settle` they are complete, with one row per pair and slice.
    pub(crate) rows: Vec<SliceRow>,
    /// The width of a slice, as a power of two of nanoseconds.
    pub(crate) shift: u32,
    /// The first and the last slice in use.
    pub(crate) used: Option<(i64, i64)>,
    /// Whether a pair may have several rows for one slice.
    has_repeats: bool,
    most_rows: usize,
}

impl Default for SliceCounts {
    fn default() -> Self {
        Self {
            waiting: Vec::with_capacity(WAITING),
            pairs: Vec::new(),
            first_pair: Vec::new(),
            index: HashTable::new(),
            hasher: DefaultHashBuilder::default(),
            rows: Vec::new(),
            shift: FIRST_SHIFT,
            used: None,
            has_repeats: false,
            most_rows: MOST_ROWS,
        }
    }
}

impl SliceCounts {
    /// Adds the count of samples, or their value. `time_ns` is the time since the profile's origin, if known.
    #[inline]
    pub(crate) fn add(&mut self, stack: StackId, situation: SituationId, time_ns: Option<i64>, sum: i64) {
        self.waiting.push(TimedSample { stack, situation, time_ns, sum });
        if self.waiting.len() == WAITING {
            self.count_waiting();
        }
    }

    #[cold]
    fn count_waiting(&mut self) {
        let mut waiting = std::mem::take(&mut self.waiting);
        waiting.drain(..).for_each(|seen| self.count(seen));
        self.waiting = waiting;
    }

    #[inline]
    fn count(&mut self, TimedSample { stack, situation, time_ns, sum }: TimedSample) {
        let pair = self.pair(stack, situation);
        let all = &mut self.pairs[pair].sum;
        *all = all.saturating_add(sum);
        let Some(time_ns) = time_ns else { return };
        let slice = time_ns >> self.shift;
        match self.used {
            Some((first, last)) if first <= slice && slice <= last => self.add_row(pair, slice, sum),
            _ => self.extend(pair, time_ns, sum),
        }
    }

    #[inline]
    fn pair(&mut self, stack: StackId, situation: SituationId) -> usize {
        match self.first_pair.get(stack.index()) {
            Some(&known) if known > 0 => {
                let pair = known as usize - 1;
                if self.pairs[pair].situation == situation {
                    pair
                } else {
                    self.further_pair(stack, situation)
                }
            }
            _ => self.first_pair_of(stack, situation),
        }
    }

    fn first_pair_of(&mut self, stack: StackId, situation: SituationId) -> usize {
        let pair = self.push_pair(stack, situation);
        if stack.index() >= self.first_pair.len() {
            self.first_pair.resize(stack.index() + 1, 0);
        }
        // With more than 2^32 pairs, every sample would use the index.
        self.first_pair[stack.index()] = u32::try_from(pair + 1).unwrap_or(0);
        pair
    }

    fn further_pair(&mut self, stack: StackId, situation: SituationId) -> usize {
        let hash = self.hasher.hash_one((stack, situation));
        let pairs = &self.pairs;
        let is_wanted = |&pair: &usize| pairs[pair].stack == stack && pairs[pair].situation == situation;
        if let Some(&pair) = self.index.find(hash, is_wanted) {
            return pair;
        }
        let pair = self.push_pair(stack, situation);
        let Self { pairs, index, hasher, .. } = self;
        let key = |pair: usize| (pairs[pair].stack, pairs[pair].situation);
        index.insert_unique(hash, pair, |&pair| hasher.hash_one(key(pair)));
        pair
    }

    fn push_pair(&mut self, stack: StackId, situation: SituationId) -> usize {
        self.pairs.push(Pair { stack, situation, sum: 0, last_row: NO_ROW });
        self.pairs.len() - 1
    }

    #[inline]
    fn add_row(&mut self, pair: usize, slice: i64, sum: i64) {
        let (last_slice, last_row) = self.pairs[pair].last_row;
        if last_slice == slice {
            let all = &mut self.rows[last_row].sum;
            *all = all.saturating_add(sum);
            return;
        }
        self.has_repeats |= last_slice > slice;
        self.pairs[pair].last_row = (slice, self.rows.len());
        self.rows.push(SliceRow { pair, slice, sum });
        if self.rows.len() > self.row_limit() {
            self.make_room();
        }
    }

    const fn row_limit(&self) -> usize {
        let by_pairs = self.pairs.len() * ROWS_PER_PAIR;
        if by_pairs > self.most_rows { by_pairs } else { self.most_rows }
    }

    /// Extends the range of slices, and widens the slices if there are too many.
    #[cold]
    fn extend(&mut self, pair: usize, time_ns: i64, sum: i64) {
        loop {
            let slice = time_ns >> self.shift;
            let (first, last) = self.used.unwrap_or((slice, slice));
            let (first, last) = (first.min(slice), last.max(slice));
            // With a shift of 63 there are only two slices: before the origin and after it.
            if last.saturating_sub(first) < MOST_SLICES {
                self.used = Some((first, last));
                return self.add_row(pair, slice, sum);
            }
            self.widen();
        }
    }

    /// Widens slices until the rows take at most half of the limit.
    #[cold]
    fn make_room(&mut self) {
        self.merge_repeats();
        while self.rows.len() > self.row_limit() / 2 && self.used.is_some_and(|(first, last)| first < last) {
            self.widen();
        }
    }

    /// Doubles the width of slices.
    fn widen(&mut self) {
        self.shift += 1;
        self.used = self.used.map(|(first, last)| (first >> 1, last >> 1));
        for row in &mut self.rows {
            row.slice >>= 1;
        }
        self.merge();
    }

    /// Counts waiting samples, and merges the rows of each pair and slice.
    pub(crate) fn settle(&mut self) {
        self.count_waiting();
        self.merge_repeats();
    }

    fn merge_repeats(&mut self) {
        if std::mem::take(&mut self.has_repeats) {
            self.rows.sort_unstable();
            self.merge();
        }
    }

    /// Merges rows of the same pair and slice, which must be consecutive among the rows of their pair.
    fn merge(&mut self) {
        self.pairs.iter_mut().for_each(|pair| pair.last_row = NO_ROW);
        let mut kept: usize = 0;
        for index in 0..self.rows.len() {
            let row = self.rows[index];
            let (last_slice, last_row) = &mut self.pairs[row.pair].last_row;
            if *last_slice == row.slice {
                let sum = &mut self.rows[*last_row].sum;
                *sum = sum.saturating_add(row.sum);
                continue;
            }
            (*last_slice, *last_row) = (row.slice, kept);
            self.rows[kept] = row;
            kept += 1;
        }
        self.rows.truncate(kept);
    }
}

#[cfg(test)]
mod tests {
    use borehole_model::{Frame, Tables};

    use super::*;

    fn stacks(count: usize) -> Vec<StackId> {
        let mut tables = Tables::default();
        let mut stack = |number: usize| {
            let name = tables.intern_string(number.to_string().as_bytes()).unwrap();
            let frame = tables.intern_frame(&Frame::named(name)).unwrap();
            tables.intern_stack(None, frame).unwrap()
        };
        (0..count).map(&mut stack).collect()
    }

    const MS: i64 = 1 << FIRST_SHIFT;

    /// Sorted tuples of pair, slice and sum.
    fn rows(counts: &SliceCounts) -> Vec<(usize, i64, i64)> {
        let mut rows: Vec<_> = counts.rows.iter().map(|row| (row.pair, row.slice, row.sum)).collect();
        rows.sort_unstable();
        rows
    }

    #[test]
    fn slices_widen_as_time_goes_on_and_no_sample_is_lost() {
        let stacks = stacks(3);
        let mut counts = SliceCounts::default();
        for time in 0..100_000_i64 {
            counts.add(stacks[usize::try_from(time % 3).unwrap()], 0, Some(time * MS), 2);
        }
        counts.settle();
        assert_eq!(counts.shift, FIRST_SHIFT + 6);
        assert_eq!(counts.used, Some((0, 99_999 >> 6)));
        assert_eq!(counts.rows.len(), 3 * 1563);
        assert_eq!(counts.rows.iter().map(|row| row.sum).sum::<i64>(), 200_000);
        assert_eq!(counts.pairs.iter().map(|pair| pair.sum).sum::<i64>(), 200_000);
        assert!(counts.rows.iter().all(|row| row.sum <= 44));
    }

    #[test]
    fn a_clock_that_goes_backwards_has_slices_before_the_origin() {
        let stacks = stacks(1);
        let mut counts = SliceCounts::default();
        for time in [0, 5, -3, 5, -3, i64::MIN / 2, i64::MAX] {
            counts.add(stacks[0], 0, Some(time), 1);
        }
        counts.settle();
        let shift = counts.shift;
        assert_eq!(
            rows(&counts),
            [(0, (i64::MIN / 2) >> shift, 1), (0, -1, 2), (0, 0, 3), (0, i64::MAX >> shift, 1)]
        );
        let (first, last) = counts.used.unwrap();
        assert!(last - first < MOST_SLICES && last - first >= MOST_SLICES / 4, "{first} to {last}");
    }

    #[test]
    fn situations_of_a_stack_are_told_apart_and_samples_without_time_have_no_slice() {
        let stacks = stacks(2);
        let mut counts = SliceCounts::default();
        for (stack, situation) in [(0, 0), (0, 1), (1, 1), (0, 1), (0, 0)] {
            counts.add(stacks[stack], situation, None, 5);
        }
        counts.settle();
        let pairs: Vec<_> = counts.pairs.iter().map(|pair| (pair.stack, pair.situation, pair.sum)).collect();
        assert_eq!(pairs, [(stacks[0], 0, 10), (stacks[0], 1, 10), (stacks[1], 1, 5)]);
        assert!(counts.rows.is_empty() && counts.used.is_none());
    }

    #[test]
    fn too_many_rows_make_slices_wider() {
        let stacks = stacks(10);
        let mut counts = SliceCounts { most_rows: 100, ..SliceCounts::default() };
        for time in 0..1000 {
            for &stack in &stacks {
                counts.add(stack, 0, Some(time * MS), 1);
            }
        }
        counts.settle();
        assert!(counts.rows.len() <= 101 && counts.rows.len() >= 20, "{}", counts.rows.len());
        assert_eq!(counts.rows.iter().map(|row| row.sum).sum::<i64>(), 10_000);
    }
}
