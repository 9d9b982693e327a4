//! What workers and tasks do, as plain data. Times are nanoseconds on the clock of the trace.

use serde::Serialize;

use super::view::{Rows, Spread};

/// A worker.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct WorkerRow {
    /// Its number.
    pub worker: u64,
    /// Polls.
    pub polls: u64,
    /// Time in polls.
    pub busy_ns: u64,
    /// Time between being unparked and parked, as far as one thread did all of it.
    pub active_ns: u64,
    /// CPU time of that; `None` where the trace does not say.
    pub cpu_ns: Option<u64>,
    /// Time parked.
    pub parked_ns: u64,
    /// How often it was parked.
    pub parks: u64,
    /// Its longest poll.
    pub longest_poll_ns: u64,
    /// The longest that its queue was seen.
    pub longest_queue: u64,
    /// The longest that the kernel let it wait for a CPU when it was unparked.
    pub longest_wait_ns: Option<u64>,
}

/// Polls.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PollView {
    /// Those that ended.
    pub durations: Spread,
    /// Those whose end the trace does not hold.
    pub unended: u64,
    /// By where their task was spawned, the place that took longest in sum first.
    pub places: Rows<PlaceRow>,
    /// The longest, the longest first.
    pub longest: Rows<LongPoll>,
}

/// A place where tasks are spawned, and the polls of those.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PlaceRow {
    /// The place: file, line and column.
    pub spawned_at: String,
    /// The polls.
    pub durations: Spread,
}

/// A poll.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LongPoll {
    /// How long it was.
    pub duration_ns: u64,
    /// When it began.
    pub start_ns: u64,
    /// The worker.
    pub worker: u64,
    /// The task.
    pub task: u64,
    /// Where the task was spawned.
    pub spawned_at: String,
    /// Whether the trace ends before the poll does, which is then as long as until there.
    pub is_open: bool,
}

/// Tasks.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct TaskView {
    /// Those whose spawning the trace holds.
    pub spawned: u64,
    /// Those of them that ended.
    pub ended: u64,
    /// Those of them that were alive at the end.
    pub alive: u64,
    /// Those that were polled, and were spawned before the trace begins.
    pub older: u64,
    /// Those of the older ones that were alive at the end.
    pub older_alive: u64,
    /// Those that only their end is known of: closures on the blocking pool, which nobody polls.
    pub blocking: u64,
    /// How long those lived whose spawning and end are known.
    pub lifetimes: Spread,
    /// By where they were spawned, most alive at the end first.
    pub places: Rows<TaskPlaceRow>,
    /// Tasks alive as the runtimes counted them, all together: first, last, and most.
    pub counted: Option<AliveCounts>,
}

/// How many tasks were alive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct AliveCounts {
    /// How often they were counted.
    pub samples: u64,
    /// At the beginning.
    pub first: u64,
    /// At the end.
    pub last: u64,
    /// The most at any time.
    pub peak: u64,
    /// When that was so for the first time.
    pub peak_ns: u64,
}

/// A place where tasks are spawned, and what became of those.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TaskPlaceRow {
    /// The place.
    pub spawned_at: String,
    /// How many were spawned.
    pub spawned: u64,
    /// How many of them were alive at the end.
    pub alive: u64,
}

/// How long tasks waited to be polled.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct DelayView {
    /// The delays.
    pub durations: Spread,
    /// How many were over 5 ms.
    #[serde(rename = "over_5_ms")]
    pub high: u64,
    /// Whether the runtime measured them; otherwise they are from a task's first wake to its next poll.
    pub is_measured: bool,
    /// The longest, the longest first.
    pub worst: Rows<Delay>,
}

/// A wait.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Delay {
    /// How long.
    pub delay_ns: u64,
    /// When the poll began that ended it.
    pub poll_ns: u64,
    /// The task.
    pub task: u64,
    /// The worker that polled it, if known.
    pub worker: Option<u64>,
    /// Where the task was spawned.
    pub spawned_at: String,
}

/// Wakes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct WakeView {
    /// All.
    pub count: u64,
    /// Those from outside any task.
    pub from_outside: u64,
    /// Those of a task by itself.
    pub by_itself: u64,
    /// Those from a thread that is no worker.
    pub off_worker: u64,
}
