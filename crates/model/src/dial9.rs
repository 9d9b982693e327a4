//! The names of dial9's events and of their fields, and the labels that samples get from them.
//!
//! Only names that several modules use are here. Source, unless another is named: dial9 0.5.7, and 0.3.2 for
//! [`event::QUEUE_SAMPLE`] and its fields.

/// Declares constants: a name, its text, and its description.
macro_rules! names {
    ($($name:ident = $text:literal, $description:literal;)*) => {
        $(#[doc = $description] pub const $name: &str = $text;)*
    };
}

/// The names of events.
pub mod event {
    names! {
        POLL_START = "PollStartEvent", "A worker begins to poll a task.";
        POLL_END = "PollEndEvent", "A worker has polled a task.";
        WORKER_PARK = "WorkerParkEvent", "A worker goes to sleep.";
        WORKER_UNPARK = "WorkerUnparkEvent", "A worker wakes up.";
        RUNTIME_METRICS = "RuntimeMetricsEvent", "The lengths of a runtime's queues.";
        QUEUE_SAMPLE = "QueueSampleEvent", "The lengths of a runtime's queues, in dial9 0.3.2.";
        TASK_SPAWN = "TaskSpawnEvent", "A task is spawned.";
        TASK_TERMINATE = "TaskTerminateEvent", "A task ends.";
        WAKE = "WakeEventEvent", "A task is woken.";
        CPU_SAMPLE = "CpuSampleEvent", "The stack of a thread, on or off the CPU.";
        ALLOC = "AllocEvent", "A sampled allocation, with its stack.";
        TASK_DUMP = "TaskDumpEvent", "The stack of a waiting task.";
        SYMBOL = "SymbolTableEntry", "The name of an address.";
        METADATA = "SegmentMetadataEvent", "Facts about a file and its process.";
        CLOCK_SYNC = "ClockSyncEvent", "The clock of the events and the wall clock at one moment.";
        SPAN_CLOSE = "SpanCloseEvent", "A span ends.";
        SPAN_ENTER_PREFIX = "SpanEnter:", "The beginning of the names of events that enter a span.";
        SPAN_EXIT_PREFIX = "SpanExit:", "The beginning of the names of events that leave a span.";
        EVENTS_LOST = "EventsLostEvent", "Events are missing. Source: `borehole-recorder`.";
    }
}

/// The names of fields.
pub mod field {
    names! {
        WORKER = "worker_id", "The number of a worker.";
        THREAD = "tid", "The system's number of a thread.";
        TASK = "task_id", "The number of a task.";
        SPAN_TASK = "dial9.tokio.task_id", "The number of the task that entered a span.";
        SPAWNED_AT = "spawn_loc", "The place where a task was spawned.";
        INSTRUMENTED = "instrumented", "Whether the wakes of a task are recorded.";
        LOCAL_QUEUE = "local_queue", "The number of tasks in the queue of a worker.";
        CPU_TIME = "cpu_time_ns", "The CPU time of a thread so far.";
        CPU_WAIT = "sched_wait_ns", "The time that a thread waited for a processor.";
        QUEUE_DEPTH = "global_queue_depth", "The number of tasks in the queue of all workers.";
        ALIVE_TASKS = "alive_tasks", "The number of tasks that have not ended.";
        RUNTIME = "runtime_name", "The name of a runtime.";
        WAKER_TASK = "waker_task_id", "The number of the task that wakes another one.";
        WOKEN_TASK = "woken_task_id", "The number of the task that is woken.";
        TARGET_WORKER = "target_worker", "The number of the worker that wakes a task.";
        SAMPLE_SOURCE = "source", "The reason of a sample; 1 is [`OFF_CPU`](super::OFF_CPU).";
        THREAD_NAME = "thread_name", "The name of a thread.";
        STACK = "callchain", "Addresses, the leaf first.";
        ADDRESS = "addr", "The address of a symbol or of an allocation.";
        SIZE = "size", "The size of a symbol or of an allocation in bytes.";
        SYMBOL = "symbol_name", "The name of a function.";
        INLINE_DEPTH = "inline_depth", "0 for a compiled function; each inlining adds 1.";
        FILE = "source_file", "The source file of an address.";
        LINE = "source_line", "The line of an address, 1-based; 0 is unknown.";
        ENTRIES = "entries", "Keys and values of metadata.";
        UNIX_TIME = "realtime_ns", "The wall-clock time in nanoseconds since 1970.";
        SPAN = "span_id", "The number of a span.";
        SPAN_NAME = "span_name", "The name of a span.";
        LOST_EVENTS = "lost_events", "The number of missing events. Source: `borehole-recorder`.";
        COUNT = "count", "The number of equal samples. Source: Borehole's exporter.";
        PROCESS = "pid", "The process of a sample. Source: Borehole's exporter.";
        LABELS = "labels", "The labels of a sample. Source: Borehole's exporter.";
    }
}

/// The keys of metadata.
pub mod metadata {
    names! {
        COMPLETE = "segment.complete", "`true` in a completed file.";
        HOST = "host", "The name of the machine.";
        BOOT = "boot_id", "The identity of the machine since it was started.";
        PROCESS = "pid", "The system's number of the process. Source: `borehole-recorder`.";
        RUNTIME_PREFIX = "runtime.", "The beginning of the keys that list the workers of a runtime: `0,1`.";
        POLL_COVERAGE = "tokio.poll_coverage", "`all`, or [`SPAWNS_ONLY`](super::SPAWNS_ONLY).";
        CPU_HZ = "cpu.profile.frequency_hz", "The frequency of CPU samples, in Hertz.";
        DUMP_REASON = "dump.reason", "Why a file was written early. Source: `borehole-recorder`.";
    }
}

/// The keys of the labels that samples get from events.
pub mod label {
    names! {
        SOURCE = "source", "The kind of the sample, as in [`SampleKind::name`](crate::SampleKind::name).";
        WORKER = "worker", "The number of the worker.";
        TASK = "task", "The number of the task.";
        INPUT = "input", "The name of the input, if several were kept apart.";
    }
}

/// The value of [`metadata::POLL_COVERAGE`] for traces with the polls of those tasks only that the recorder spawned.
pub const SPAWNS_ONLY: &str = "dial9-spawns-only";

/// The value of [`field::SAMPLE_SOURCE`] for off-CPU samples.
pub const OFF_CPU: u64 = 1;

/// The worker number of the threads that run blocking calls.
const BLOCKING_POOL: u8 = 254;

/// The worker number of an unknown worker.
pub const UNKNOWN_WORKER: u8 = 255;

/// Whether a number is that of a worker.
///
/// Large machines have worker numbers above the two reserved ones. With so many workers that some have the reserved
/// numbers, they cannot be distinguished.
#[must_use]
pub const fn is_worker(number: u64) -> bool {
    number != BLOCKING_POOL as u64 && number != UNKNOWN_WORKER as u64
}
