//! The order of records in time.
//!
//! Each CPU has a buffer of its own, and `perf record` empties one after the other. Each time that it has emptied all of them it
//! writes the end of a round. So no record that comes later is older than the newest one of the round before.
//!
//! Source: Linux 6.1, `tools/perf/util/ordered-events.c`.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Records that wait for older ones.
#[derive(Debug, Default)]
pub(super) struct Rounds {
    /// Times, and positions in the file.
    waiting: BinaryHeap<Reverse<(u64, usize)>>,
    /// The newest time so far.
    newest: u64,
    /// The newest time at the end of the last round.
    settled: u64,
}

impl Rounds {
    pub(super) fn push(&mut self, time: u64, at: usize) {
        self.newest = self.newest.max(time);
        self.waiting.push(Reverse((time, at)));
    }

    /// Ends a round; [`Self::pop`] then yields what is in order.
    pub(super) fn end_round(&mut self) -> u64 {
        std::mem::replace(&mut self.settled, self.newest)
    }

    /// The position of the oldest record, if it is not newer than `limit`.
    pub(super) fn pop(&mut self, limit: u64) -> Option<usize> {
        let &Reverse((time, at)) = self.waiting.peek()?;
        if time > limit {
            return None;
        }
        self.waiting.pop();
        Some(at)
    }

    pub(super) fn held_bytes(&self) -> usize {
        self.waiting.capacity() * size_of::<(u64, usize)>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_wait_until_no_older_one_can_come() {
        let mut rounds = Rounds::default();
        rounds.push(30, 0);
        rounds.push(10, 1);
        let limit = rounds.end_round();
        assert_eq!(rounds.pop(limit), None);
        rounds.push(20, 2);
        rounds.push(50, 3);
        let limit = rounds.end_round();
        let settled: Vec<_> = std::iter::from_fn(|| rounds.pop(limit)).collect();
        assert_eq!(settled, [1, 2, 0]);
        assert_eq!(rounds.pop(u64::MAX), Some(3));
    }
}
