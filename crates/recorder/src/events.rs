//! The events of the recorder itself. Source of the first two: `dial9-core` 0.5.7.

use crate::trc::TraceEvent;

/// The clock of the events and the wall clock, read at one moment.
///
/// The first event of a file, and the one after each [`SegmentMetadataEvent`].
#[derive(TraceEvent, Clone, Debug, PartialEq, Eq)]
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
pub struct SegmentMetadataEvent {
    /// The time at which it was written.
    #[traceevent(timestamp)]
    pub timestamp_ns: u64,
    /// Keys and values.
    pub entries: Vec<(String, String)>,
}

/// States that events are missing, because a buffer or the disk was full, or their values did not fit the format.
#[derive(TraceEvent, Clone, Debug, PartialEq, Eq)]
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
        assert_eq!(EventsLostEvent::NAME, event::EVENTS_LOST);
        assert_eq!(names(EventsLostEvent::FIELDS), [field::LOST_EVENTS, field::THREAD_NAME]);
    }
}
