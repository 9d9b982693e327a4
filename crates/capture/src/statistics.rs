//! Counts of the requested samples by outcome.

use std::ops::AddAssign;

/// The number of samples by outcome.
///
/// `asked` is the sum of `taken`, `idle`, `torn`, `failed` and `missed`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Samples that the schedule requested: deadlines times lanes.
    pub asked: u64,
    /// Samples with a stack.
    pub taken: u64,
    /// Samples that found the process executing nothing.
    pub idle: u64,
    /// Samples that were given up because the stack changed at every look.
    pub torn: u64,
    /// Samples that could not be read.
    pub failed: u64,
    /// Samples whose deadline passed while others were taken, or while this program did not run.
    pub missed: u64,
    /// Looks that were repeated because the stack changed.
    pub retried: u64,
    /// Samples for which the process was stopped.
    pub stopped: u64,
    /// Samples for which the process should have been stopped and could not be.
    pub unstopped: u64,
    /// Stacks without some frames on the root's side, because they exceeded the maximum depth.
    pub truncated: u64,
    /// Attached processes.
    pub attached: u64,
    /// The duration in nanoseconds.
    pub elapsed_ns: u64,
    /// The time of the first sample in nanoseconds since 1970. `None` if there was no sample or the machine does not
    /// know the time.
    pub first_sample_unix_ns: Option<i64>,
}

impl Statistics {
    /// The counts as keys and values, for the metadata of a file. Processes and times are left out, because the file
    /// states them elsewhere.
    #[must_use]
    pub fn facts(&self) -> [(&'static str, u64); 10] {
        // Name all fields, so that a new one is either stated or left out on purpose.
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

    /// Stacks per second.
    #[must_use]
    pub fn taken_per_second(&self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "a rate for people to read")]
        let rate = self.taken as f64 * 1e9 / self.elapsed_ns.max(1) as f64;
        rate
    }
}

impl AddAssign for Statistics {
    /// Adds the counts of a session that ran at the same time. The longer duration and the earlier first sample win;
    /// everything else is summed.
    fn add_assign(&mut self, other: Self) {
        // Name all fields, so that a new one is not forgotten.
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
