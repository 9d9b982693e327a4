//! The activity of workers and tasks as plain data. Times are nanoseconds on the clock of the trace.

use serde::Serialize;

use super::view::{LimitedRows, Spread};

/// The activity of a worker.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct WorkerRow {
    /// Its number.
    pub worker: u64,
    /// The number of its polls.
    pub polls: u64,
    /// The time in polls.
    pub busy_ns: u64,
    /// The time from unpark to park, where one thread did all of it.
    pub active_ns: u64,
    /// The CPU time of that; `None` if the trace does not record it.
    pub cpu_ns: Option<u64>,
    /// The time parked.
    pub parked_ns: u64,
    /// The number of parks.
    pub parks: u64,
    /// Its longest poll.
    pub longest_poll_ns: u64,
    /// The longest observed queue.
    pub longest_queue: u64,
    /// The longest time that it waited for a CPU after an unpark; `None` if the trace does not record it.
    pub longest_wait_ns: Option<u64>,
}

/// The polls of a trace.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct PollView {
    /// The durations of ended polls.
    pub durations: Spread,
    /// The number of polls whose end is not in the trace.
    pub unended: u64,
    /// The polls by where their task was spawned, the place with the longest total first.
    pub places: LimitedRows<PlaceRow>,
    /// The longest polls, the longest first.
    pub longest: LimitedRows<LongPoll>,
}

/// The polls, or the delays, of the tasks spawned at one place.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct PlaceRow {
    /// The place: file, line and column.
    pub spawned_at: String,
    /// The durations.
    pub durations: Spread,
}

/// A long poll.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct LongPoll {
    /// Its duration.
    pub duration_ns: u64,
    /// Its start.
    pub start_ns: u64,
    /// The worker.
    pub worker: u64,
    /// The task.
    pub task: u64,
    /// Where the task was spawned.
    pub spawned_at: String,
    /// Whether the poll outlasts the trace, in which case its duration ends with the trace.
    pub is_open: bool,
}

/// The tasks of a trace.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct TaskView {
    /// The number of tasks spawned in the trace.
    pub spawned: u64,
    /// The number of those that ended.
    pub ended: u64,
    /// The number of those that were alive at the end.
    pub alive: u64,
    /// The number of polled tasks that were spawned before the trace begins.
    pub older: u64,
    /// The number of older tasks that were alive at the end.
    pub older_alive: u64,
    /// The number of tasks of which only the end is known: closures on the blocking pool, which are never polled.
    pub blocking: u64,
    /// The lifetimes of tasks with a known start and end.
    pub lifetimes: Spread,
    /// The tasks by where they were spawned, most alive at the end first.
    pub places: LimitedRows<TaskPlaceRow>,
    /// The numbers of tasks alive that the runtimes counted, all together.
    pub counted: Option<AliveCounts>,
}

/// The number of tasks alive over time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct AliveCounts {
    /// The number of counts.
    pub samples: u64,
    /// The number at the beginning.
    pub first: u64,
    /// The number at the end.
    pub last: u64,
    /// The largest number.
    pub peak: u64,
    /// The time at which it was first reached.
    pub peak_ns: u64,
}

/// The tasks spawned at one place.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct TaskPlaceRow {
    /// The place.
    pub spawned_at: String,
    /// The number of tasks spawned.
    pub spawned: u64,
    /// The number of those that were alive at the end.
    pub alive: u64,
}

/// The delays of tasks waiting to be polled.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct DelayView {
    /// The delays.
    pub durations: Spread,
    /// The number of delays over 5 ms.
    #[serde(rename = "over_5_ms")]
    pub high: u64,
    /// Whether the runtime measured them; otherwise they run from a task's first wake to its next poll.
    pub is_measured: bool,
    /// The delays by where their task was spawned, the place with the longest total first.
    pub places: LimitedRows<PlaceRow>,
    /// The longest delays, the longest first.
    pub worst: LimitedRows<Delay>,
}

/// A wait of a task to be polled.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Delay {
    /// Its duration.
    pub delay_ns: u64,
    /// The start of the poll that ended it.
    pub poll_ns: u64,
    /// The task.
    pub task: u64,
    /// The worker that polled it, if known.
    pub worker: Option<u64>,
    /// Where the task was spawned.
    pub spawned_at: String,
}

/// The wakes of a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct WakeView {
    /// The number of all wakes.
    pub count: u64,
    /// The number of wakes from outside any task.
    pub from_outside: u64,
    /// The number of wakes of a task by itself.
    pub by_itself: u64,
    /// The number of wakes from a thread that is not a worker.
    pub off_worker: u64,
}
