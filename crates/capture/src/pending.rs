//! Samples whose stacks are not named yet, in the order in which they were taken.

use std::collections::VecDeque;

use borehole_model::{Sample, StackId};

/// The number of samples from which on sampling waits for names: 8 MB.
const MOST_PENDING: usize = 1 << 16;

/// Samples to write once their names are known.
#[derive(Debug, Default)]
pub(crate) struct PendingSamples(VecDeque<PendingSample>);

/// A sample that waits for names.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PendingSample {
    /// The index of its process.
    pub(crate) row: usize,
    /// The stack as it was found.
    pub(crate) stack: StackId,
    /// The rest.
    pub(crate) sample: Sample<'static>,
}

impl PendingSamples {
    pub(crate) fn push(&mut self, sample: PendingSample) {
        self.0.push_back(sample);
    }

    pub(crate) fn first(&self) -> Option<PendingSample> {
        self.0.front().copied()
    }

    pub(crate) fn drop_first(&mut self) {
        self.0.pop_front();
    }

    pub(crate) fn is_full(&self) -> bool {
        self.0.len() >= MOST_PENDING
    }
}
