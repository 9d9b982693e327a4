//! The numbers of workers, which all runtimes of a recording share.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use crate::trc::dial9::is_worker;

/// Gives each runtime numbers that no other one has.
#[derive(Debug, Default)]
pub(crate) struct WorkerNumbers(Mutex<u64>);

impl WorkerNumbers {
    /// Reserves `count` numbers, the lowest that are free, without the two that stand for no worker. A runtime with more
    /// workers than there are below those two begins above them.
    pub(crate) fn reserve(&self, count: u64) -> Range<u64> {
        let mut next = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_free = |first: u64| (first..first.saturating_add(count)).take(300).all(is_worker);
        let first = (*next..).find(|&first| is_free(first)).unwrap_or(*next);
        *next = first.saturating_add(count);
        first..*next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_runtime_has_the_numbers_of_another_or_of_no_worker() {
        let numbers = WorkerNumbers::default();
        assert_eq!([2, 4, 0, 200].map(|count| numbers.reserve(count)), [0..2, 2..6, 6..6, 6..206]);
        assert_eq!([64, 1].map(|count| numbers.reserve(count)), [256..320, 320..321]);
        assert_eq!(WorkerNumbers::default().reserve(254), 0..254);
        assert_eq!(WorkerNumbers::default().reserve(255), 256..511);
    }
}
