//! The resources that the process has used.

use std::time::Duration;

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike as _;

use crate::recorder::Handle;
use crate::source::{Source, SourceState};
use crate::trc::TraceEvent;

/// The resources that the process has used so far. Source: dial9 0.5.7.
#[derive(TraceEvent, Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProcessResourceUsageEvent {
    /// The time.
    #[traceevent(timestamp)]
    pub timestamp_ns: u64,
    /// CPU time in the program.
    #[traceevent(unit = "ns", kind = "counter")]
    pub user_cpu_ns: u64,
    /// CPU time in the system for the program.
    #[traceevent(unit = "ns", kind = "counter")]
    pub system_cpu_ns: u64,
    /// The largest resident size so far.
    #[traceevent(unit = "bytes", kind = "gauge")]
    pub max_rss_bytes: u64,
    /// Page faults without input.
    #[traceevent(kind = "counter")]
    pub minor_faults: u64,
    /// Page faults with input.
    #[traceevent(kind = "counter")]
    pub major_faults: u64,
    /// Inputs of blocks.
    #[traceevent(kind = "counter")]
    pub block_input_ops: u64,
    /// Outputs of blocks.
    #[traceevent(kind = "counter")]
    pub block_output_ops: u64,
    /// Context switches because a thread waited.
    #[traceevent(kind = "counter")]
    pub voluntary_context_switches: u64,
    /// Context switches because another thread was to run.
    #[traceevent(kind = "counter")]
    pub involuntary_context_switches: u64,
}

pub(crate) struct ProcessSource;

/// Source: dial9 0.5.7.
const EVERY: Duration = Duration::from_millis(100);

/// The unit of the largest resident size. Source: getrusage(2) of Linux and of macOS.
const RSS_UNIT_BYTES: u64 = if cfg!(target_vendor = "apple") { 1 } else { 1024 };

impl Source for ProcessSource {
    fn name(&self) -> &'static str {
        "process"
    }

    fn interval(&self) -> Duration {
        EVERY
    }

    fn sample(&mut self, handle: &Handle) -> SourceState {
        let Ok(usage) = getrusage(UsageWho::RUSAGE_SELF) else { return SourceState::Ended };
        let count = |count: std::ffi::c_long| u64::try_from(count).unwrap_or(0);
        let ns = |time: nix::sys::time::TimeVal| u64::try_from(time.num_microseconds()).unwrap_or(0) * 1_000;
        handle.record_now(|timestamp_ns| ProcessResourceUsageEvent {
            timestamp_ns,
            user_cpu_ns: ns(usage.user_time()),
            system_cpu_ns: ns(usage.system_time()),
            max_rss_bytes: count(usage.max_rss()).saturating_mul(RSS_UNIT_BYTES),
            minor_faults: count(usage.minor_page_faults()),
            major_faults: count(usage.major_page_faults()),
            block_input_ops: count(usage.block_reads()),
            block_output_ops: count(usage.block_writes()),
            voluntary_context_switches: count(usage.voluntary_context_switches()),
            involuntary_context_switches: count(usage.involuntary_context_switches()),
        });
        SourceState::Continues
    }
}
