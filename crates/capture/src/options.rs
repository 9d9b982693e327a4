//! The options of sampling.

use std::time::Duration;

/// When to stop a process for a sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StopMode {
    /// Never.
    Never,
    /// If its stack has changed at every look.
    #[default]
    WhenTorn,
    /// For every sample.
    Always,
}

/// The treatment of a process that executes nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Idle {
    /// Count it, and write no sample.
    #[default]
    Skip,
    /// Write a sample with one frame, `<idle>`.
    Sample,
}

/// The arrangement of the samples of several processes in one output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Grouping {
    /// A segment begins whenever a process is attached to. If a segment has a single process, its metadata states the
    /// process; otherwise each sample does.
    #[default]
    Segments,
    /// One segment contains all samples, and each sample states its process.
    Bundled,
}

/// The options of sampling.
#[derive(Clone, Copy, Debug)]
pub struct SampleOptions {
    /// The time from one sample to the next; `None` or zero: as fast as possible.
    pub period: Option<Duration>,
    /// The maximum number of immediate repeats of a look during which the stack changed.
    pub max_retries: u32,
    /// When to stop a process.
    pub stop: StopMode,
    /// The treatment of a process that executes nothing.
    pub idle: Idle,
    /// The time after which to end; `None`: no limit.
    pub duration: Option<Duration>,
    /// The number of samples after which to end; `None`: no limit. Includes written idle samples. Sessions of one
    /// coordinator count together.
    pub samples: Option<u64>,
    /// The age at which a new segment begins; `None`: no limit.
    pub rotate: Option<Duration>,
    /// The arrangement of the samples of several processes.
    pub grouping: Grouping,
    /// One in this many samples is taken with its thread stopped, of subjects that have an oracle; `None`: none.
    pub oracle: Option<u32>,
}

impl Default for SampleOptions {
    fn default() -> Self {
        Self {
            period: Some(Duration::from_millis(10)),
            max_retries: 10,
            stop: StopMode::default(),
            idle: Idle::default(),
            duration: None,
            samples: None,
            rotate: None,
            grouping: Grouping::default(),
            oracle: Some(100),
        }
    }
}

impl SampleOptions {
    pub(crate) fn period_ns(&self) -> Option<u64> {
        self.period.map(nanoseconds).filter(|&period_ns| period_ns > 0)
    }
}

pub(crate) fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
