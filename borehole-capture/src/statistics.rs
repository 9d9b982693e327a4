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
        [
            ("samples.asked", self.asked),
            ("samples.taken", self.taken),
            ("samples.idle", self.idle),
            ("samples.torn", self.torn),
            ("samples.failed", self.failed),
            ("samples.missed", self.missed),
            ("samples.retried", self.retried),
            ("samples.stopped", self.stopped),
            ("samples.unstopped", self.unstopped),
            ("samples.truncated", self.truncated),
        ]
    }

    /// Samples a second that were answered, with a stack or with the news that there was none.
    #[must_use]
    pub fn achieved_per_second(&self) -> f64 {
        let answered = self.taken.saturating_add(self.idle);
        #[expect(clippy::cast_precision_loss, reason = "a rate for people to read")]
        let rate = answered as f64 * 1e9 / self.elapsed_ns.max(1) as f64;
        rate
    }

    /// What has been added since `earlier`. The time of the first sample stays.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            asked: self.asked - earlier.asked,
            taken: self.taken - earlier.taken,
            idle: self.idle - earlier.idle,
            torn: self.torn - earlier.torn,
            failed: self.failed - earlier.failed,
            missed: self.missed - earlier.missed,
            retried: self.retried - earlier.retried,
            stopped: self.stopped - earlier.stopped,
            unstopped: self.unstopped - earlier.unstopped,
            truncated: self.truncated - earlier.truncated,
            attached: self.attached - earlier.attached,
            elapsed_ns: self.elapsed_ns - earlier.elapsed_ns,
            first_sample_unix_ns: self.first_sample_unix_ns,
        }
    }
}

impl AddAssign for Statistics {
    /// Of two that ran at the same time: the longer time, the earlier first sample, the sum of everything else.
    fn add_assign(&mut self, other: Self) {
        self.asked += other.asked;
        self.taken += other.taken;
        self.idle += other.idle;
        self.torn += other.torn;
        self.failed += other.failed;
        self.missed += other.missed;
        self.retried += other.retried;
        self.stopped += other.stopped;
        self.unstopped += other.unstopped;
        self.truncated += other.truncated;
        self.attached += other.attached;
        self.elapsed_ns = self.elapsed_ns.max(other.elapsed_ns);
        let firsts = [self.first_sample_unix_ns, other.first_sample_unix_ns];
        self.first_sample_unix_ns = firsts.into_iter().flatten().min();
    }
}
