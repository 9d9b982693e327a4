//! The events, as dial9 names and lays them out. Source: `dial9-tokio-telemetry` 0.5.7.

use borehole_recorder::trc::TraceEvent;

/// The worker that is not known.
pub(crate) const UNKNOWN_WORKER: u8 = 255;

/// A worker begins to poll a task.
#[derive(TraceEvent, Clone, Debug, PartialEq, Eq)]
#[traceevent(wire_slot)]
pub struct PollStartEvent<'a> {
    /// When.
    #[traceevent(timestamp)]
    pub timestamp_ns: u64,
    /// The worker; 255 if it is not known.
    pub worker_id: u64,
    /// Tasks in the worker's queue, not told here: 0.
    pub local_queue: u8,
    /// The task.
    pub task_id: u64,
    /// Where it was spawned: `file:line:column`.
    #[traceevent(pooled)]
    pub spawn_loc: &'a str,
}

/// A worker has polled a task, the one that it began with.
#[derive(TraceEvent, Clone, Debug, PartialEq, Eq)]
#[traceevent(wire_slot)]
pub struct PollEndEvent {
    /// When.
    #[traceevent(timestamp)]
    pub timestamp_ns: u64,
    /// The worker; 255 if it is not known.
    pub worker_id: u64,
}

/// A worker goes to sleep.
#[derive(TraceEvent, Clone, Debug, PartialEq, Eq)]
#[traceevent(wire_slot)]
pub struct WorkerParkEvent {
    /// When.
    #[traceevent(timestamp)]
    pub timestamp_ns: u64,
    /// The worker; 255 if it is not known.
    pub worker_id: u64,
    /// Tasks in the worker's queue, not told here: 0.
    pub local_queue: u8,
    /// How long its thread has run so far.
    pub cpu_time_ns: u64,
    /// Its thread, as the system numbers it; 0 where that is not known.
    pub tid: u32,
}

/// A worker wakes up.
#[derive(TraceEvent, Clone, Debug, PartialEq, Eq)]
#[traceevent(wire_slot)]
pub struct WorkerUnparkEvent {
    /// When.
    #[traceevent(timestamp)]
    pub timestamp_ns: u64,
    /// The worker; 255 if it is not known.
    pub worker_id: u64,
    /// Tasks in the worker's queue, not told here: 0.
    pub local_queue: u8,
    /// How long its thread has run so far.
    pub cpu_time_ns: u64,
    /// How long the thread waited for a processor.
    pub sched_wait_ns: Option<u64>,
    /// Its thread, as the system numbers it; 0 where that is not known.
    pub tid: u32,
}

/// How a runtime stands.
#[derive(TraceEvent, Clone, Debug, PartialEq, Eq)]
pub struct RuntimeMetricsEvent<'a> {
    /// When.
    #[traceevent(timestamp)]
    pub timestamp_ns: u64,
    /// The runtime.
    #[traceevent(pooled)]
    pub runtime_name: &'a str,
    /// Tasks in the queue of all workers.
    pub global_queue_depth: u32,
    /// Tasks that have not ended.
    pub alive_tasks: u32,
}

/// A task is spawned.
#[derive(TraceEvent, Clone, Debug, PartialEq, Eq)]
#[traceevent(wire_slot)]
pub struct TaskSpawnEvent<'a> {
    /// When.
    #[traceevent(timestamp)]
    pub timestamp_ns: u64,
    /// The task.
    pub task_id: u64,
    /// Where: `file:line:column`.
    #[traceevent(pooled)]
    pub spawn_loc: &'a str,
    /// Whether its wakes are recorded.
    pub instrumented: bool,
    /// The worker that spawns it.
    pub worker_id: Option<u64>,
}

/// A task ends.
#[derive(TraceEvent, Clone, Debug, PartialEq, Eq)]
#[traceevent(wire_slot)]
pub struct TaskTerminateEvent {
    /// When.
    #[traceevent(timestamp)]
    pub timestamp_ns: u64,
    /// The task.
    pub task_id: u64,
}

/// A task is woken.
#[derive(TraceEvent, Clone, Debug, PartialEq, Eq)]
#[traceevent(wire_slot)]
pub struct WakeEventEvent {
    /// When.
    #[traceevent(timestamp)]
    pub timestamp_ns: u64,
    /// The task that wakes it; 0 if it is none.
    pub waker_task_id: u64,
    /// The task.
    pub woken_task_id: u64,
    /// The worker that wakes it; 255 if it is none.
    pub target_worker: u8,
}
