//! The last events in memory, written to a file when something happens.

use std::collections::VecDeque;

/// The newest batches that fit.
pub(crate) struct Ring {
    batches: VecDeque<RingBatch>,
    bytes: u64,
    limit_bytes: u64,
}

/// A complete batch, and the number of the program's events in it.
pub(crate) struct RingBatch {
    pub(crate) bytes: Vec<u8>,
    pub(crate) events: u64,
}

impl Ring {
    pub(crate) fn new(limit_bytes: u64) -> Self {
        Self { batches: VecDeque::new(), bytes: 0, limit_bytes }
    }

    /// Adds a batch, and drops the oldest ones that no longer fit. The newest one is always kept.
    pub(crate) fn push(&mut self, bytes: &[u8], events: u64) {
        self.bytes += bytes.len() as u64;
        self.batches.push_back(RingBatch { bytes: bytes.to_vec(), events });
        while self.bytes > self.limit_bytes && self.batches.len() > 1 {
            let dropped = self.batches.pop_front().map_or(0, |batch| batch.bytes.len());
            self.bytes -= dropped as u64;
        }
    }

    /// Takes all batches, the oldest first: a later dump does not repeat them.
    pub(crate) fn take(&mut self) -> VecDeque<RingBatch> {
        self.bytes = 0;
        std::mem::take(&mut self.batches)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_stay() {
        let mut ring = Ring::new(100);
        (1..=10).for_each(|events| ring.push(&[0; 30], events));
        let events = |ring: &mut Ring| ring.take().iter().map(|batch| batch.events).collect::<Vec<_>>();
        assert_eq!(events(&mut ring), [8, 9, 10]);
        assert_eq!(events(&mut ring), Vec::<u64>::new());
        ring.push(&[0; 500], 1);
        assert_eq!(events(&mut ring), [1]);
    }
}
