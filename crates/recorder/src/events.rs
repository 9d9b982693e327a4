//! The events of the recorder itself. Source of those that are not described as Borehole's own: dial9 0.5.7.

use crate::trc::{StackFrames, TraceEvent};

/// The clock of the events and the wall clock, read at one moment.
///
/// The first event of a file, and the one after each [`SegmentMetadataEvent`].
#[derive(TraceEvent, Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClockSyncEvent {
    /// The time on the clock of the events.
    #[traceevent(timestamp)]
    pub timestamp_ns: u64,
    /// The wall-clock time in nanoseconds since 1970.
    pub realtime_ns: u64,
}

/// Facts about a file and the process: keys and values. The last event of this type in a file counts.
///
/// A completed file has `segment.complete` = `true`.
#[derive(TraceEvent, Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SegmentMetadataEvent {
    /// The time at which it was written.
    #[traceevent(timestamp)]
    pub timestamp_ns: u64,
    /// Keys and values.
    pub entries: Vec<(String, String)>,
}

/// Borehole's own: states that events are missing, because a buffer or the disk was full, or their values did not fit the format.
#[derive(TraceEvent, Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EventsLostEvent<'a> {
    /// The time at which this could be written. The loss happened after the last flush that reached a file.
    #[traceevent(timestamp)]
    pub timestamp_ns: u64,
    /// The number of events lost. It is not a counter that grows from event to event: each event states a separate loss.
    pub lost_events: u64,
    /// The name of the thread that recorded them; absent for threads without a name, and if there were too many names.
    #[traceevent(pooled)]
    pub thread_name: Option<&'a str>,
}

/// Borehole's own: states why the recording was written or completed early.
#[derive(TraceEvent, Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DumpTriggeredEvent<'a> {
    /// The time.
    #[traceevent(timestamp)]
    pub timestamp_ns: u64,
    /// The reason, such as `SIGUSR1` or `panic`.
    pub reason: &'a str,
    /// The number of triggers so far that came too soon after a dump to cause another one.
    pub skipped: u64,
}

/// The stack of a thread, on or off the CPU.
#[derive(TraceEvent, Clone, Debug, PartialEq, Eq)]
#[traceevent(wire_slot)]
#[non_exhaustive]
pub struct CpuSampleEvent<'a> {
    /// The time.
    #[traceevent(timestamp)]
    pub timestamp_ns: u64,
    /// The worker; 255: readers find it by the thread.
    pub worker_id: u64,
    /// The system's number of the thread.
    pub tid: u32,
    /// 0: on the CPU, 1: off the CPU.
    pub source: u8,
    /// The name of the thread.
    #[traceevent(pooled)]
    pub thread_name: Option<&'a str>,
    /// Addresses, the leaf first.
    #[traceevent(pooled)]
    pub callchain: StackFrames<'a>,
    /// The processor, if known.
    pub cpu: Option<u64>,
}

/// A sampled allocation.
#[derive(TraceEvent, Clone, Debug, PartialEq, Eq)]
#[traceevent(wire_slot)]
#[non_exhaustive]
pub struct AllocEvent<'a> {
    /// The time.
    #[traceevent(timestamp)]
    pub timestamp_ns: u64,
    /// The system's number of the thread.
    pub tid: u32,
    /// Its size in bytes.
    pub size: u64,
    /// Its address.
    pub addr: u64,
    /// Return addresses, the leaf first.
    #[traceevent(pooled)]
    pub callchain: StackFrames<'a>,
}

/// A sampled allocation is freed.
#[derive(TraceEvent, Clone, Debug, PartialEq, Eq)]
#[traceevent(wire_slot)]
#[non_exhaustive]
pub struct FreeEvent {
    /// The time.
    #[traceevent(timestamp)]
    pub timestamp_ns: u64,
    /// The system's number of the thread.
    pub tid: u32,
    /// Its address.
    pub addr: u64,
    /// Its size in bytes.
    pub size: u64,
    /// The time of its [`AllocEvent`].
    pub alloc_timestamp_ns: u64,
}

/// The name of an address. It is valid for all events of the process.
#[derive(TraceEvent, Clone, Debug, PartialEq, Eq)]
#[traceevent(wire_slot)]
#[non_exhaustive]
pub struct SymbolTableEntry<'a> {
    /// Always 0.
    #[traceevent(timestamp)]
    pub timestamp_ns: u64,
    /// The address.
    pub addr: u64,
    /// The number of addresses that have this name.
    pub size: u64,
    /// The function.
    #[traceevent(pooled)]
    pub symbol_name: &'a str,
    /// 0 for a compiled function; each inlining adds 1.
    pub inline_depth: u64,
    /// Its source file; empty if unknown.
    #[traceevent(pooled)]
    pub source_file: &'a str,
    /// The line, 1-based; 0 if unknown.
    pub source_line: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trc::TypedField;
    use crate::trc::dial9::{event, field};

    #[test]
    fn names_are_those_that_readers_know() {
        let names = |fields: &[TypedField]| fields.iter().map(|field| field.name).collect::<Vec<_>>();
        assert_eq!(ClockSyncEvent::NAME, event::CLOCK_SYNC);
        assert_eq!(names(ClockSyncEvent::FIELDS), [field::UNIX_TIME]);
        assert_eq!(SegmentMetadataEvent::NAME, event::METADATA);
        assert_eq!(names(SegmentMetadataEvent::FIELDS), [field::ENTRIES]);
        assert_eq!(names(CpuSampleEvent::FIELDS)[..2], [field::WORKER, field::THREAD]);
        assert_eq!(
            names(CpuSampleEvent::FIELDS)[2..5],
            [field::SAMPLE_SOURCE, field::THREAD_NAME, field::STACK]
        );
        assert_eq!((CpuSampleEvent::NAME, AllocEvent::NAME), (event::CPU_SAMPLE, event::ALLOC));
        assert_eq!(names(AllocEvent::FIELDS), [field::THREAD, field::SIZE, field::ADDRESS, field::STACK]);
        assert_eq!(SymbolTableEntry::NAME, event::SYMBOL);
        assert_eq!(names(SymbolTableEntry::FIELDS)[..3], [field::ADDRESS, field::SIZE, field::SYMBOL]);
        assert_eq!(names(SymbolTableEntry::FIELDS)[3..], [field::INLINE_DEPTH, field::FILE, field::LINE]);
        assert_eq!(EventsLostEvent::NAME, event::EVENTS_LOST);
        assert_eq!(names(EventsLostEvent::FIELDS), [field::LOST_EVENTS, field::THREAD_NAME]);
    }
}
