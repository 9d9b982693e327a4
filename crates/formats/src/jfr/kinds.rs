//! The events that are samples, and what each of them measures.
//!
//! Source: OpenJDK 17 and 25, `hotspot/share/jfr/metadata/metadata.xml`; async-profiler 4.1, `src/jfrMetadata.cpp`.

/// An event that is a sample.
#[derive(Debug)]
pub(super) struct SampleKind {
    /// The name of its type.
    pub(super) event: &'static str,
    /// The kind and unit of its value.
    pub(super) value: (&'static str, &'static str),
    pub(super) measured: EventMeasure,
    /// The field with the class that it is about; empty if there is none.
    pub(super) class: &'static str,
}

/// The value of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EventMeasure {
    /// Each counts 1.
    One,
    /// The number in a field.
    Field(&'static str),
    /// The time in a field, which has ticks of the clock.
    Ticks(&'static str),
}

const fn kind(
    event: &'static str,
    value: (&'static str, &'static str),
    measured: EventMeasure,
    class: &'static str,
) -> SampleKind {
    SampleKind { event, value, measured, class }
}

const DURATION: EventMeasure = EventMeasure::Ticks("duration");

/// The number of the kinds.
pub(super) const KIND_COUNT: usize = KINDS.len();

/// All kinds. The first one in a recording is shown by default.
pub(super) const KINDS: &[SampleKind] = &[
    kind("jdk.CPUTimeSample", ("cpu", "nanoseconds"), EventMeasure::Ticks("samplingPeriod"), ""),
    kind("jdk.ExecutionSample", ("samples", "count"), EventMeasure::One, ""),
    kind("profiler.WallClockSample", ("wall_samples", "count"), EventMeasure::Field("samples"), ""),
    kind("jdk.NativeMethodSample", ("native_samples", "count"), EventMeasure::One, ""),
    kind("jdk.ObjectAllocationSample", ("alloc", "bytes"), EventMeasure::Field("weight"), "objectClass"),
    kind(
        "jdk.ObjectAllocationInNewTLAB",
        ("alloc_in_new_tlab", "bytes"),
        EventMeasure::Field("tlabSize"),
        "objectClass",
    ),
    kind(
        "jdk.ObjectAllocationOutsideTLAB",
        ("alloc_outside_tlab", "bytes"),
        EventMeasure::Field("allocationSize"),
        "objectClass",
    ),
    kind("profiler.LiveObject", ("live", "bytes"), EventMeasure::Field("allocationSize"), "objectClass"),
    kind("profiler.Malloc", ("malloc", "bytes"), EventMeasure::Field("size"), ""),
    kind("jdk.JavaMonitorEnter", ("monitor_enter", "nanoseconds"), DURATION, "monitorClass"),
    kind("jdk.JavaMonitorWait", ("monitor_wait", "nanoseconds"), DURATION, "monitorClass"),
    kind("jdk.ThreadPark", ("park", "nanoseconds"), DURATION, "parkedClass"),
    kind("jdk.ThreadSleep", ("sleep", "nanoseconds"), DURATION, ""),
    kind("profiler.NativeLock", ("native_lock", "nanoseconds"), DURATION, ""),
    kind("jdk.JavaExceptionThrow", ("exceptions", "count"), EventMeasure::One, "thrownClass"),
    kind("jdk.JavaErrorThrow", ("errors", "count"), EventMeasure::One, "thrownClass"),
];

impl SampleKind {
    /// The index of the kind of an event.
    pub(super) fn index(event: &[u8]) -> Option<usize> {
        KINDS.iter().position(|kind| kind.event.as_bytes() == event)
    }
}
