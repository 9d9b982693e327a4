//! How often the system samples the threads of a program, where they are too short for the period that was asked for.

/// The shortest CPU time from one record of a thread to the next, in nanoseconds. Each takes the program some microseconds.
const SHORTEST_NS: u64 = 250_000;

/// The CPU time of a program after which it is seen whether records account for it: the system states it to a hundredth of a second.
const WATCHED_NS: u64 = 200_000_000;
const WATCHED_SAMPLES: u64 = 20;

/// Records are so many times as frequent after each step.
const STEP: u64 = 4;

/// Decides how often records are taken, and which of them become samples.
///
/// The system counts the time of each thread from its beginning, so threads that end before their first period are never sampled. If
/// the records of a program account for less than three quarters of its CPU time, they are taken more often, and one of each group of
/// records becomes a sample, drawn at random. So each sample stands for the same time as before.
#[derive(Debug)]
pub(crate) struct EventPace {
    /// The CPU time that a sample stands for.
    sample_ns: u64,
    /// The records of which one is a sample.
    group: u64,
    /// The number of the next record in its group, and that of the one that is kept.
    next: u64,
    kept: u64,
    random: u64,
    /// The records since the program had used this CPU time.
    records: u64,
    watched_from_ns: u64,
}

impl EventPace {
    /// A pace of one record a sample, of a program that has used this CPU time.
    pub(crate) fn new(sample_ns: u64, used_ns: u64) -> Self {
        let random = 0x9e37_79b9_7f4a_7c15;
        Self { sample_ns, group: 1, next: 0, kept: 0, random, records: 0, watched_from_ns: used_ns }
    }

    /// The CPU time from one record of a thread to the next.
    pub(crate) fn event_ns(&self) -> u64 {
        self.sample_ns / self.group
    }

    /// Whether the next record becomes a sample.
    pub(crate) fn keeps_next(&mut self) -> bool {
        self.records += 1;
        if self.next == 0 {
            self.random ^= self.random << 13;
            self.random ^= self.random >> 7;
            self.random ^= self.random << 17;
            self.kept = self.random % self.group;
        }
        let is_kept = self.next == self.kept;
        self.next = (self.next + 1) % self.group;
        is_kept
    }

    /// Whether records are to be taken more often, now that the program has used this CPU time, and so many records were lost.
    pub(crate) fn is_too_slow(&mut self, used_ns: u64, lost: u64) -> bool {
        self.records = self.records.saturating_add(lost);
        let used = used_ns.saturating_sub(self.watched_from_ns);
        if used < WATCHED_NS.max(self.sample_ns.saturating_mul(WATCHED_SAMPLES)) {
            return false;
        }
        let seen = self.records.saturating_mul(self.event_ns());
        (self.records, self.watched_from_ns) = (0, used_ns);
        seen < used / 4 * 3 && self.event_ns() / STEP >= SHORTEST_NS
    }

    /// Takes the next step.
    pub(crate) fn quicken(&mut self) {
        self.group *= STEP;
        self.next = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn records_are_taken_more_often_until_they_account_for_the_time() {
        let mut pace = EventPace::new(10 * MS, 500 * MS);
        assert!(!pace.is_too_slow(650 * MS, 0), "too early to say");
        assert!(pace.is_too_slow(750 * MS, 0));
        pace.quicken();
        assert_eq!(pace.event_ns(), 2_500_000);
        let kept = (0..60).filter(|_| pace.keeps_next()).count();
        assert_eq!(kept, 15);
        assert!(!pace.is_too_slow(950 * MS, 0), "150 of 200 ms");
        assert!(!pace.is_too_slow(1150 * MS, 80), "what was lost was seen");
        assert!(pace.is_too_slow(1350 * MS, 0));
        pace.quicken();
        assert!(!pace.is_too_slow(1550 * MS, 0), "the shortest");
    }

    #[test]
    fn which_record_of_a_group_is_kept_differs() {
        let mut pace = EventPace::new(16 * MS, 0);
        pace.quicken();
        let places: Vec<usize> =
            (0..400).map(|_| pace.keeps_next()).enumerate().filter(|kept| kept.1).map(|(at, _)| at).collect();
        assert_eq!(places.len(), 100);
        for place in 0..4 {
            let count = places.iter().filter(|at| *at % 4 == place).count();
            assert!((10..45).contains(&count), "{place}: {count}");
        }
    }
}
