//! The events, with the names and layouts of dial9. Source: `dial9-tokio-telemetry` 0.5.7.

use borehole_recorder::trc::TraceEvent;

/// A worker begins to poll a task.
#[derive(TraceEvent, Clone, Debug, PartialEq, Eq)]
#[traceevent(wire_slot)]
pub struct PollStartEvent<'a> {
    /// The time.
    #[traceevent(timestamp)]
    pub timestamp_ns: u64,
    /// The worker; 255 if unknown.
    pub worker_id: u64,
    /// Number of tasks in the worker's queue; not recorded, always 0.
    pub local_queue: u8,
    /// The task.
    pub task_id: u64,
    /// The place where it was spawned: `file:line:column`.
    #[traceevent(pooled)]
    pub spawn_loc: &'a str,
}

/// A worker has polled a task: the one of its last [`PollStartEvent`].
#[derive(TraceEvent, Clone, Debug, PartialEq, Eq)]
#[traceevent(wire_slot)]
pub struct PollEndEvent {
    /// The time.
    #[traceevent(timestamp)]
    pub timestamp_ns: u64,
    /// The worker; 255 if unknown.
    pub worker_id: u64,
}

/// A worker goes to sleep.
#[derive(TraceEvent, Clone, Debug, PartialEq, Eq)]
#[traceevent(wire_slot)]
pub struct WorkerParkEvent {
    /// The time.
    #[traceevent(timestamp)]
    pub timestamp_ns: u64,
    /// The worker; 255 if unknown.
    pub worker_id: u64,
    /// Number of tasks in the worker's queue; not recorded, always 0.
    pub local_queue: u8,
    /// The CPU time of its thread so far; 0 if unknown.
    pub cpu_time_ns: u64,
    /// The system's number of its thread; 0 if unknown.
    pub tid: u32,
}

/// A worker wakes up.
#[derive(TraceEvent, Clone, Debug, PartialEq, Eq)]
#[traceevent(wire_slot)]
pub struct WorkerUnparkEvent {
    /// The time.
    #[traceevent(timestamp)]
    pub timestamp_ns: u64,
    /// The worker; 255 if unknown.
    pub worker_id: u64,
    /// Number of tasks in the worker's queue; not recorded, always 0.
    pub local_queue: u8,
    /// The CPU time of its thread so far; 0 if unknown.
    pub cpu_time_ns: u64,
    /// The time that the thread waited for a processor; `None`: unknown.
    pub sched_wait_ns: Option<u64>,
    /// The system's number of its thread; 0 if unknown.
    pub tid: u32,
}

/// The state of a runtime's queues.
#[derive(TraceEvent, Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RuntimeMetricsEvent<'a> {
    /// The time.
    #[traceevent(timestamp)]
    pub timestamp_ns: u64,
    /// The name of the runtime.
    #[traceevent(pooled)]
    pub runtime_name: &'a str,
    /// Number of tasks in the queue of all workers.
    pub global_queue_depth: u32,
    /// Number of tasks that have not ended.
    pub alive_tasks: u32,
}

/// A task is spawned.
#[derive(TraceEvent, Clone, Debug, PartialEq, Eq)]
#[traceevent(wire_slot)]
#[non_exhaustive]
pub struct TaskSpawnEvent<'a> {
    /// The time.
    #[traceevent(timestamp)]
    pub timestamp_ns: u64,
    /// The task.
    pub task_id: u64,
    /// The place where it is spawned: `file:line:column`.
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
#[non_exhaustive]
pub struct TaskTerminateEvent {
    /// The time.
    #[traceevent(timestamp)]
    pub timestamp_ns: u64,
    /// The task.
    pub task_id: u64,
}

/// A task is woken.
#[derive(TraceEvent, Clone, Debug, PartialEq, Eq)]
#[traceevent(wire_slot)]
pub struct WakeEventEvent {
    /// The time.
    #[traceevent(timestamp)]
    pub timestamp_ns: u64,
    /// The task that wakes it; 0 if it is not woken by a task.
    pub waker_task_id: u64,
    /// The woken task.
    pub woken_task_id: u64,
    /// The worker that wakes it; 255 if it is not woken by a worker.
    pub target_worker: u8,
}

#[cfg(test)]
mod tests {
    use borehole_recorder::trc::dial9::{event, field};

    use super::*;

    #[test]
    fn names_are_those_that_readers_know() {
        let types = [
            (PollStartEvent::NAME, PollStartEvent::FIELDS, event::POLL_START),
            (PollEndEvent::NAME, PollEndEvent::FIELDS, event::POLL_END),
            (WorkerParkEvent::NAME, WorkerParkEvent::FIELDS, event::WORKER_PARK),
            (WorkerUnparkEvent::NAME, WorkerUnparkEvent::FIELDS, event::WORKER_UNPARK),
            (RuntimeMetricsEvent::NAME, RuntimeMetricsEvent::FIELDS, event::RUNTIME_METRICS),
            (TaskSpawnEvent::NAME, TaskSpawnEvent::FIELDS, event::TASK_SPAWN),
            (TaskTerminateEvent::NAME, TaskTerminateEvent::FIELDS, event::TASK_TERMINATE),
            (WakeEventEvent::NAME, WakeEventEvent::FIELDS, event::WAKE),
        ];
        let known = [
            field::WORKER,
            field::LOCAL_QUEUE,
            field::TASK,
            field::SPAWNED_AT,
            field::CPU_TIME,
            field::CPU_WAIT,
            field::THREAD,
            field::RUNTIME,
            field::QUEUE_DEPTH,
            field::ALIVE_TASKS,
            field::INSTRUMENTED,
            field::WAKER_TASK,
            field::WOKEN_TASK,
            field::TARGET_WORKER,
        ];
        for (name, fields, expected) in types {
            assert_eq!(name, expected);
            fields.iter().for_each(|field| assert!(known.contains(&field.name), "{name}: {}", field.name));
        }
    }
}
