//! Field numbers of the messages.
//!
//! Source: google/perfetto 59.1, `protos/perfetto/trace/perfetto_trace.proto`.

/// `Trace.packet`.
pub(super) const PACKET: u32 = 1;

/// Fields of `TracePacket`.
pub(super) mod packet {
    pub(crate) const CLOCK_SNAPSHOT: u32 = 6;
    pub(crate) const TIMESTAMP: u32 = 8;
    pub(crate) const SEQUENCE_ID: u32 = 10;
    pub(crate) const TRACK_EVENT: u32 = 11;
    pub(crate) const INTERNED_DATA: u32 = 12;
    pub(crate) const SEQUENCE_FLAGS: u32 = 13;
    /// Further packets, compressed by zlib.
    pub(crate) const COMPRESSED_PACKETS: u32 = 50;
    pub(crate) const TRACK_DESCRIPTOR: u32 = 60;
}

/// Values of `TracePacket.SequenceFlags`.
pub(super) mod sequence_flags {
    pub(crate) const STATE_CLEARED: u64 = 1;
    pub(crate) const NEEDS_STATE: u64 = 2;
}

/// Fields of `ClockSnapshot` and of its `Clock`.
pub(super) mod clock {
    pub(crate) const CLOCKS: u32 = 1;
    pub(crate) const ID: u32 = 1;
    pub(crate) const TIMESTAMP: u32 = 2;
    /// The real-time clock.
    pub(crate) const REALTIME: u64 = 1;
    /// The default clock of timestamps.
    pub(crate) const BOOTTIME: u64 = 6;
}

/// Fields of `TrackDescriptor`, and of its descriptors of processes and threads.
pub(super) mod track {
    pub(crate) const UUID: u32 = 1;
    pub(crate) const NAME: u32 = 2;
    pub(crate) const PROCESS: u32 = 3;
    pub(crate) const THREAD: u32 = 4;
    pub(crate) const PARENT_UUID: u32 = 5;
    pub(crate) const COUNTER: u32 = 8;
    pub(crate) const PROCESS_PID: u32 = 1;
    pub(crate) const PROCESS_NAME: u32 = 6;
    pub(crate) const THREAD_PID: u32 = 1;
    pub(crate) const THREAD_TID: u32 = 2;
    pub(crate) const THREAD_NAME: u32 = 5;
}

/// Fields of `TrackEvent`.
pub(super) mod event {
    pub(crate) const DETAIL: u32 = 4;
    pub(crate) const TYPE: u32 = 9;
    pub(crate) const NAME_IID: u32 = 10;
    pub(crate) const TRACK_UUID: u32 = 11;
    pub(crate) const DOUBLE_COUNTER_VALUE: u32 = 44;
    pub(crate) const FLOW_IDS: u32 = 47;
    pub(crate) const TERMINATING_FLOW_IDS: u32 = 48;
    pub(crate) const BEGIN: u64 = 1;
    pub(crate) const END: u64 = 2;
    pub(crate) const INSTANT: u64 = 3;
    pub(crate) const COUNTER: u64 = 4;
}

/// Fields of `DebugAnnotation`.
pub(super) mod detail {
    pub(crate) const NAME_IID: u32 = 1;
    pub(crate) const BOOL: u32 = 2;
    pub(crate) const UNSIGNED: u32 = 3;
    pub(crate) const SIGNED: u32 = 4;
    pub(crate) const DOUBLE: u32 = 5;
    pub(crate) const TEXT: u32 = 6;
}

/// Fields of `InternedData`, and of its entries.
pub(super) mod interned {
    pub(crate) const EVENT_NAMES: u32 = 2;
    pub(crate) const DETAIL_NAMES: u32 = 3;
    pub(crate) const IID: u32 = 1;
    pub(crate) const NAME: u32 = 2;
}
