//! Detection of inputs that consist of sums rather than samples.

use std::collections::HashSet;

use borehole_model::{Context, LabelsId, Sample, StackId, Status};

/// The properties that distinguish sums.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Key {
    stack: Option<StackId>,
    process: Option<i64>,
    thread: Option<u64>,
    interpreter: Option<u64>,
    status: Option<Status>,
    labels: Option<LabelsId>,
}

/// Looks for a key that occurs again later, which happens among samples but not among sums.
///
/// Memory: grows with the distinct keys until one recurs, which happens soon in sampled inputs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sums {
    seen: HashSet<Key>,
    last: Option<Key>,
    samples: u64,
    came_back: bool,
}

impl Sums {
    #[inline]
    pub(crate) fn take(&mut self, at: Context<'_>, sample: &Sample<'_>) {
        if !self.came_back {
            self.look(at, sample);
        }
    }

    fn look(&mut self, at: Context<'_>, sample: &Sample<'_>) {
        let Sample { stack, thread, interpreter, status, labels, .. } = *sample;
        let key = Key { stack, process: at.process(sample), thread, interpreter, status, labels };
        self.samples = self.samples.saturating_add(sample.count);
        if self.last.replace(key) != Some(key) && !self.seen.insert(key) {
            self.came_back = true;
            self.seen = HashSet::new();
        }
    }

    /// Whether every key occurred in one place only, and some sum counts more than one sample.
    pub(crate) fn are_all(&self) -> bool {
        !self.came_back && self.samples > self.seen.len() as u64
    }
}
