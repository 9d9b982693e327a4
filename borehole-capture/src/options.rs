//! How processes are sampled.

use std::time::Duration;

/// When a process is stopped for a sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StopMode {
    /// Never.
    Never,
    /// When its stack has changed at every look.
    #[default]
    WhenTorn,
    /// For every sample.
    Always,
}

/// What is done with a process that executes nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Idle {
    /// It is counted, and no sample is written.
    #[default]
    Skip,
    /// A sample with one frame, `<idle>`, is written.
    Sample,
}

/// How the samples of several processes stand in one output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Grouping {
    /// A segment begins whenever a process is attached to. Of one with a single process the metadata names it, of others
    /// each sample.
    #[default]
    Segments,
    /// One segment for all, and each sample names its process.
    Bundled,
}

/// How processes are sampled.
#[derive(Clone, Copy, Debug)]
pub struct SampleOptions {
    /// The time from one sample to the next; `None` or zero: as fast as it can.
    pub period: Option<Duration>,
    /// How often a look is repeated at once when the stack changed meanwhile.
    pub max_retries: u32,
    /// When a process is stopped.
    pub stop: StopMode,
    /// What is done with a process that executes nothing.
    pub idle: Idle,
    /// After which time to end.
    pub duration: Option<Duration>,
    /// After how many samples, idle ones included if they are written, to end. Sessions of one coordinator count together.
    pub samples: Option<u64>,
    /// When a new segment is begun.
    pub rotate: Option<Duration>,
    /// How the samples of several processes stand in the output.
    pub grouping: Grouping,
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
