//! Distinct times.

use serde::{Serialize, Serializer};

/// Counts distinct times, up to a limit. Serialized, it is [`DistinctTimes::count`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DistinctTimes {
    /// The times so far, some of them several times.
    times_ns: Vec<i64>,
    /// The number of times to collect before duplicates are removed.
    room: usize,
    more: bool,
}

impl DistinctTimes {
    /// The maximum number of distinct times: those of a quarter of an hour at 1 kHz, in 12 MiB.
    pub const MAX: usize = 1 << 20;

    /// The minimum number of times to collect at once.
    const LEAST_ROOM: usize = 1 << 12;

    /// The number of distinct times; `None` if more than [`DistinctTimes::MAX`].
    #[must_use]
    pub const fn count(&self) -> Option<usize> {
        if self.more { None } else { Some(self.times_ns.len()) }
    }

    pub(crate) fn note(&mut self, time_ns: i64) {
        if self.more || self.times_ns.last() == Some(&time_ns) {
            return;
        }
        self.times_ns.push(time_ns);
        if self.times_ns.len() > self.room.max(Self::LEAST_ROOM) {
            self.settle();
            let known = self.times_ns.len();
            self.room = (known + known / 2).max(Self::LEAST_ROOM);
            self.times_ns.reserve_exact((self.room + 1).saturating_sub(known));
        }
    }

    /// Removes duplicates.
    pub(crate) fn settle(&mut self) {
        // In place, because there is no room for a copy.
        self.times_ns.sort_unstable();
        self.times_ns.dedup();
        if self.times_ns.len() > Self::MAX {
            self.more = true;
            self.times_ns = Vec::new();
        }
    }
}

impl Serialize for DistinctTimes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.count().serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(times: impl Iterator<Item = i64>) -> Option<usize> {
        let mut ticks = DistinctTimes::default();
        times.for_each(|time| ticks.note(time));
        ticks.settle();
        ticks.count()
    }

    #[test]
    fn a_time_counts_once_wherever_it_comes_again() {
        assert_eq!(count([].into_iter()), Some(0));
        assert_eq!(count([5, 5, 3, 5, -1, 3].into_iter()), Some(3));
        assert_eq!(count((0..100_000).chain((0..100_000).rev()).chain(50_000..100_001)), Some(100_001));
    }

    #[test]
    fn what_is_held_has_a_bound_however_many_times_come_again() {
        let most = i64::try_from(DistinctTimes::MAX).unwrap();
        let mut ticks = DistinctTimes::default();
        let mut held = 0;
        for round in 0..3 {
            for time in (0..most).step_by(2) {
                ticks.note(time + round % 2);
                held = held.max(ticks.times_ns.capacity());
            }
        }
        ticks.settle();
        assert_eq!(ticks.count(), Some(DistinctTimes::MAX));
        assert!(held <= DistinctTimes::MAX + DistinctTimes::MAX / 2 + 1, "{held}");
    }

    #[test]
    fn beyond_the_bound_nothing_is_said_and_nothing_kept() {
        let most = i64::try_from(DistinctTimes::MAX).unwrap();
        assert_eq!(count(0..most), Some(DistinctTimes::MAX));
        assert_eq!(count(0..2 * most), None);
        assert_eq!(count(0..=most), None);
    }
}
