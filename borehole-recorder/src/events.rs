//! What the recorder itself has to say. Source of the first two: `dial9-core` 0.5.7.

use crate::trc::TraceEvent;

/// Two clocks at one moment: that of the events, and that of the world.
///
/// The first event of a file, and the one after each [`SegmentMetadataEvent`].
#[derive(TraceEvent, Clone, Debug, PartialEq, Eq)]
pub struct ClockSyncEvent {
    /// When, on the clock of the events.
    #[traceevent(timestamp)]
    pub timestamp_ns: u64,
    /// When, in nanoseconds since 1970.
    pub realtime_ns: u64,
}

/// What is known about a file and the process: keys and values. The last one of a file counts.
///
/// A file that was completed says `segment.complete` = `true`.
#[derive(TraceEvent, Clone, Debug, PartialEq, Eq)]
pub struct SegmentMetadataEvent {
    /// When it was written.
    #[traceevent(timestamp)]
    pub timestamp_ns: u64,
    /// Keys and values.
    pub entries: Vec<(String, String)>,
}

/// Events are missing: a buffer or the disk was full, or the values did not fit the format.
#[derive(TraceEvent, Clone, Debug, PartialEq, Eq)]
pub struct EventsLostEvent<'a> {
    /// When it could be written: the loss happened since the last flush that reached a file.
    #[traceevent(timestamp)]
    pub timestamp_ns: u64,
    /// How many. It is no counter, which would grow from event to event: each tells of a loss of its own.
    pub lost_events: u64,
    /// The name of the thread that wanted to record them; absent for threads without a name, and where
    /// they were too many.
    #[traceevent(pooled)]
    pub thread_name: Option<&'a str>,
}
