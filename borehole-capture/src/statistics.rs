//! What became of the samples that were asked for.

use std::ops::AddAssign;

/// How many samples there were and what became of them.
///
/// `asked` is the sum of `taken`, `idle`, `torn`, `failed` and `missed`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Samples that the schedule asked for: deadlines times what there was to be sampled.
    pub asked: u64,
    /// Stacks.
    pub taken: u64,
    /// Looks at a process that was executing nothing.
    pub idle: u64,
    /// Samples that were given up because the stack changed at every look.
    pub torn: u64,
    /// Samples that could not be read.
    pub failed: u64,
    /// Deadlines that passed while others were being sampled, or while this program was not running.
    pub missed: u64,
    /// Looks that were repeated because the stack changed.
    pub retried: u64,
    /// Samples for which the process was stopped.
    pub stopped: u64,
    /// Samples for which the process was to be stopped and could not be.
    pub unstopped: u64,
    /// Stacks that lack frames on the root's side, because there were more than were to be kept.
    pub truncated: u64,
    /// Processes that were attached to.
    pub attached: u64,
    /// How long it went on, in nanoseconds.
    pub elapsed_ns: u64,
    /// When the first sample was written, in nanoseconds since 1970. `None`: none was, or the machine does not know the time.
    pub first_sample_unix_ns: Option<i64>,
}

impl Statistics {
    /// What became of the samples as keys and values, for the metadata of a file. Processes and times are left out: the
    /// file tells them otherwise.
    #[must_use]
    pub fn facts(&self) -> [(&'static str, u64); 10] {
        // All are named, so that a new one is either told or left out on purpose.
        let Self {
            asked,
            taken,
            idle,
            torn,
            failed,
            missed,
            retried,
            stopped,
            unstopped,
            truncated,
            attached: _,
            elapsed_ns: _,
            first_sample_unix_ns: _,
        } = *self;
        [
            ("samples.asked", asked),
            ("samples.taken", taken),
            ("samples.idle", idle),
            ("samples.torn", torn),
            ("samples.failed", failed),
            ("samples.missed", missed),
            ("samples.retried", retried),
            ("samples.stopped", stopped),
            ("samples.unstopped", unstopped),
            ("samples.truncated", truncated),
        ]
    }

    /// Stacks a second.
    #[must_use]
    pub fn taken_per_second(&self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "a rate for people to read")]
        let rate = self.taken as f64 * 1e9 / self.elapsed_ns.max(1) as f64;
        rate
    }
}

impl AddAssign for Statistics {
    /// Of two that ran at the same time: the longer time, the earlier first sample, the sum of everything else.
    fn add_assign(&mut self, other: Self) {
        // All are named, so that a new one is not forgotten.
        let Self {
            asked,
            taken,
            idle,
            torn,
            failed,
            missed,
            retried,
            stopped,
            unstopped,
            truncated,
            attached,
            elapsed_ns,
            first_sample_unix_ns,
        } = other;
        self.asked += asked;
        self.taken += taken;
        self.idle += idle;
        self.torn += torn;
        self.failed += failed;
        self.missed += missed;
        self.retried += retried;
        self.stopped += stopped;
        self.unstopped += unstopped;
        self.truncated += truncated;
        self.attached += attached;
        self.elapsed_ns = self.elapsed_ns.max(elapsed_ns);
        let firsts = [self.first_sample_unix_ns, first_sample_unix_ns];
        self.first_sample_unix_ns = firsts.into_iter().flatten().min();
    }
}
