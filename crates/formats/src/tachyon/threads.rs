//! A reader's state of each thread: its clock and its stack.

use hashbrown::HashMap;

/// A frame lost in damage.
pub const LOST_FRAME: u32 = u32::MAX;

/// A pair of thread and interpreter. The same thread may run several interpreters.
#[derive(Clone, Debug)]
pub(super) struct ThreadState {
    pub(super) id: u64,
    pub(super) interpreter: u32,
    /// The time of its last sample.
    pub(super) time_us: u64,
    /// The number of samples read of it.
    pub(super) samples: u64,
    /// The damage after which its times are early.
    pub(super) hole: Option<Hole>,
    /// Its last stack, the root first, so that the frames kept by a record stay in place.
    pub(super) stack: Vec<u32>,
    /// Whether the outer part of the stack was lost in damage.
    pub(super) lacks_root: bool,
    /// Whether the stack differs, from the root on, from the last one returned.
    pub(super) is_new: bool,
}

/// Damage that may hide samples of a thread. Times are differences, so later ones are early by the hidden samples'
/// time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hole {
    /// The offset of the damage.
    pub(super) offset: u64,
    /// The number of samples of the thread before it.
    pub(super) samples_before: u64,
}

/// The first damage that may hide samples of all threads, including threads not seen so far.
#[derive(Clone, Copy, Debug)]
struct CommonHole {
    offset: u64,
    /// The latest time of a sample before it.
    latest_us: u64,
}

/// All threads, in order of their first record.
#[derive(Debug, Default)]
pub(super) struct Threads {
    rows: Vec<ThreadState>,
    index: HashMap<(u64, u32), usize>,
    last: usize,
    /// The frames that the stacks of all threads have room for.
    stack_frames: usize,
    common_hole: Option<CommonHole>,
}

impl Threads {
    /// The memory of a thread without its stack, here and in consumers that track threads.
    pub(super) const BYTES_EACH: usize = 1 << 10;
    /// The memory of a frame of a thread's stack, here and in consumers that track its stacks.
    const FRAME_BYTES: usize = 3 * size_of::<u32>();

    /// Counts frames that the stack of a thread has got room for.
    pub(super) const fn hold_frames(&mut self, grown: usize) {
        self.stack_frames = self.stack_frames.saturating_add(grown);
    }

    /// The memory of all threads, here and in consumers that track their stacks, about.
    pub(super) const fn held_bytes(&self) -> usize {
        let frames = self.stack_frames.saturating_mul(Self::FRAME_BYTES);
        self.rows.len().saturating_mul(Self::BYTES_EACH).saturating_add(frames)
    }

    pub(super) const fn len(&self) -> usize {
        self.rows.len()
    }

    /// The row of a thread; `None` if it is new.
    ///
    /// Records of a thread are consecutive, or the threads alternate: both cases are found without the index.
    #[inline]
    pub(super) fn find(&mut self, id: u64, interpreter: u32) -> Option<usize> {
        let is = |row: &ThreadState| row.id == id && row.interpreter == interpreter;
        if self.rows.get(self.last).is_some_and(is) {
            return Some(self.last);
        }
        let next = if self.last + 1 < self.rows.len() { self.last + 1 } else { 0 };
        let found = match self.rows.get(next) {
            Some(row) if is(row) => next,
            _ => *self.index.get(&(id, interpreter))?,
        };
        self.last = found;
        Some(found)
    }

    pub(super) fn contains(&self, id: u64, interpreter: u32) -> bool {
        self.index.contains_key(&(id, interpreter))
    }

    /// Adds a thread whose first record states that its sample was taken `delta_us` after `start_us`.
    ///
    /// First records are in the order of time: if one after damage seems older than the samples before the damage, its
    /// thread has lost earlier records.
    #[cold]
    pub(super) fn add(&mut self, id: u64, interpreter: u32, start_us: u64, delta_us: u64) -> usize {
        let row = self.rows.len();
        let is_early = |hole: &CommonHole| start_us.wrapping_add(delta_us) < hole.latest_us;
        let hole = self.common_hole.filter(is_early);
        self.rows.push(ThreadState {
            id,
            interpreter,
            time_us: start_us,
            samples: 0,
            hole: hole.map(|CommonHole { offset, .. }| Hole { offset, samples_before: 0 }),
            stack: Vec::new(),
            lacks_root: false,
            is_new: true,
        });
        self.index.insert((id, interpreter), row);
        self.last = row;
        row
    }

    #[inline]
    pub(super) fn row(&self, row: usize) -> &ThreadState {
        &self.rows[row]
    }

    #[inline]
    pub(super) fn row_mut(&mut self, row: usize) -> &mut ThreadState {
        &mut self.rows[row]
    }

    /// Clears the stack of the thread that damage has touched, or those of all; returns their number.
    pub(super) fn lose_stacks(&mut self, owner: Option<(u64, u32)>) -> usize {
        let mut touched = 0;
        for row in self.rows.iter_mut().filter(|row| row.is_one_of(owner)) {
            row.lose();
            touched += 1;
        }
        touched
    }

    /// Notes that damage at `offset` may hide samples of a thread, or of all, including threads not seen so far.
    pub(super) fn note_hole(&mut self, offset: u64, owner: Option<(u64, u32)>) {
        if owner.is_none() {
            let latest_us = self.rows.iter().map(|row| row.time_us).max().unwrap_or(0);
            self.common_hole.get_or_insert(CommonHole { offset, latest_us });
        }
        self.rows.iter_mut().filter(|row| row.is_one_of(owner)).for_each(|row| row.note_hole(offset));
    }

    /// The threads with possibly hidden samples, each with the damage and the number of samples after it.
    pub(super) fn early(&self) -> impl Iterator<Item = (&ThreadState, Hole, u64)> {
        self.rows.iter().filter_map(|row| {
            let hole = row.hole?;
            let behind = row.samples - hole.samples_before;
            (behind > 0).then_some((row, hole, behind))
        })
    }
}

impl ThreadState {
    /// Notes that damage at `offset` may hide samples. Later damage adds to the same uncertainty.
    pub(super) fn note_hole(&mut self, offset: u64) {
        self.hole.get_or_insert(Hole { offset, samples_before: self.samples });
    }

    /// Whether it is the named thread; true if none is named.
    fn is_one_of(&self, owner: Option<(u64, u32)>) -> bool {
        owner.is_none_or(|owner| owner == (self.id, self.interpreter))
    }

    /// Clears the stack.
    pub(super) fn lose(&mut self) {
        self.lacks_root = true;
        self.is_new = true;
        self.stack.clear();
        self.stack.push(LOST_FRAME);
    }

    /// Replaces the stack by `frames_leaf_first`; returns the number of outer frames that are unchanged.
    pub(super) fn replace(&mut self, frames_leaf_first: &[u32]) -> usize {
        let new = frames_leaf_first.iter().rev();
        let kept = self.stack.iter().zip(new).take_while(|(old, new)| old == new).count();
        let inner = frames_leaf_first.len() - kept;
        self.push(kept, &frames_leaf_first[..inner]);
        self.lacks_root = false;
        kept
    }

    /// Keeps `kept` outer frames and puts `frames_leaf_first` on top of them.
    #[inline]
    pub(super) fn push(&mut self, kept: usize, frames_leaf_first: &[u32]) {
        self.stack.truncate(kept);
        self.stack.extend(frames_leaf_first.iter().rev());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_that_take_turns_are_found() {
        let mut threads = Threads::default();
        let ids = [(7, 0), (7, 1), (9, 0)];
        for (row, (id, interpreter)) in ids.into_iter().enumerate() {
            assert_eq!(threads.find(id, interpreter), None);
            assert_eq!(threads.add(id, interpreter, 0, 0), row);
        }
        for turn in [0, 1, 2, 0, 1, 2, 2, 0, 2, 1, 1] {
            let (id, interpreter) = ids[turn];
            assert_eq!(threads.find(id, interpreter), Some(turn));
        }
    }

    #[test]
    fn a_full_stack_keeps_the_shared_outer_frames() {
        let mut threads = Threads::default();
        threads.add(1, 0, 0, 0);
        let thread = threads.row_mut(0);
        assert_eq!(thread.replace(&[3, 2, 1]), 0);
        assert_eq!(thread.stack, [1, 2, 3]);
        assert_eq!(thread.replace(&[5, 4, 2, 1]), 2);
        assert_eq!(thread.stack, [1, 2, 4, 5]);
        assert_eq!(thread.replace(&[2, 1]), 2);
        assert_eq!(thread.stack, [1, 2]);
        thread.push(1, &[9, 8]);
        assert_eq!(thread.stack, [1, 8, 9]);
    }
}
