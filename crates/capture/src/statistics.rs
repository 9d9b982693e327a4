//! Counts of the requested samples by outcome.

use std::ops::AddAssign;

use crate::native_counts::NativeCounts;
use crate::oracle::MeasuredTruth;

/// The number of counts in a file.
pub(crate) const COUNTS: usize = 14;

/// Declares the counts, with the keys under which a file states them.
macro_rules! counts {
    ($($(#[$doc:meta])* $count:ident = $key:literal,)+) => {
        /// The number of samples by outcome.
        ///
        /// `asked` is the sum of `taken`, `idle`, `torn`, `gone`, `failed` and `missed`.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct SampleStatistics {
            $($(#[$doc])* pub $count: u64,)+
            /// Attached processes.
            pub attached: u64,
            /// The duration in nanoseconds.
            pub elapsed_ns: u64,
            /// How native stacks ended.
            pub native: NativeCounts,
            /// How far samples of running threads are from those of stopped ones.
            pub truth: MeasuredTruth,
        }

        impl SampleStatistics {
            /// The counts as keys and values, for the metadata of a file. Processes and times are left out, because the
            /// file states them elsewhere.
            #[must_use]
            pub fn facts(&self) -> [(&'static str, u64); COUNTS] {
                [$(($key, self.$count),)+]
            }
        }

        impl AddAssign for SampleStatistics {
            /// Adds the counts of a session that ran at the same time. The longer duration wins;
            /// everything else is summed.
            fn add_assign(&mut self, other: Self) {
                $(self.$count += other.$count;)+
                self.attached += other.attached;
                self.elapsed_ns = self.elapsed_ns.max(other.elapsed_ns);
                self.native += other.native;
                self.truth = self.truth.max(other.truth);
            }
        }
    };
}

counts! {
    /// Samples that the schedule requested: deadlines times lanes.
    asked = "samples.asked",
    /// Samples with a stack.
    taken = "samples.taken",
    /// Samples that found the process executing nothing.
    idle = "samples.idle",
    /// Samples that were given up because the stack changed at every look.
    torn = "samples.torn",
    /// Samples of threads that ended before they were read.
    gone = "samples.gone",
    /// Samples that could not be read.
    failed = "samples.failed",
    /// Samples whose deadline passed while others were taken, or while this program did not run.
    missed = "samples.missed",
    /// Looks that were repeated because the stack changed.
    retried = "samples.retried",
    /// Samples for which the process was stopped.
    stopped = "samples.stopped",
    /// Samples for which the process should have been stopped and could not be.
    unstopped = "samples.unstopped",
    /// Stacks without some frames on the root's side, because they exceeded the maximum depth.
    truncated = "samples.truncated",
    /// Samples taken with their thread stopped, to compare the others with them.
    reference = "samples.reference",
    /// Samples of tasks that wait, beside those that were requested.
    tasks = "samples.tasks",
    /// Points in time at which tasks that wait were left out, because too many had changed.
    cut_tasks = "samples.cut_tasks",
}

impl SampleStatistics {
    /// Stacks per second.
    #[must_use]
    pub fn taken_per_second(&self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "a rate for people to read")]
        let rate = self.taken as f64 * 1e9 / self.elapsed_ns.max(1) as f64;
        rate
    }
}
