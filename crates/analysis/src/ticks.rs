//! Distinct times.

/// Counts distinct times, up to a bound.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ticks {
    /// The times so far, of which some may stand there more than once.
    times_ns: Vec<i64>,
    /// How many times are collected before those that were met again are taken out.
    room: usize,
    more: bool,
}

impl Ticks {
    /// How many times are told apart: those of a quarter of an hour at 1 kHz, in 12 MiB.
    pub const MAX: usize = 1 << 20;

    /// The fewest times that are collected at once.
    const LEAST_ROOM: usize = 1 << 12;

    /// How many distinct times there were; `None` if more than [`Ticks::MAX`].
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

    /// Takes out what was met before.
    pub(crate) fn settle(&mut self) {
        // In place: what is held is all that there is room for.
        self.times_ns.sort_unstable();
        self.times_ns.dedup();
        if self.times_ns.len() > Self::MAX {
            self.more = true;
            self.times_ns = Vec::new();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(times: impl Iterator<Item = i64>) -> Option<usize> {
        let mut ticks = Ticks::default();
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
        let most = i64::try_from(Ticks::MAX).unwrap();
        let mut ticks = Ticks::default();
        let mut held = 0;
        for round in 0..3 {
            for time in (0..most).step_by(2) {
                ticks.note(time + round % 2);
                held = held.max(ticks.times_ns.capacity());
            }
        }
        ticks.settle();
        assert_eq!(ticks.count(), Some(Ticks::MAX));
        assert!(held <= Ticks::MAX + Ticks::MAX / 2 + 1, "{held}");
    }

    #[test]
    fn beyond_the_bound_nothing_is_said_and_nothing_kept() {
        let most = i64::try_from(Ticks::MAX).unwrap();
        assert_eq!(count(0..most), Some(Ticks::MAX));
        assert_eq!(count(0..2 * most), None);
        assert_eq!(count(0..=most), None);
    }
}
