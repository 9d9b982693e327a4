//! The page of a Tokio trace as plain data: lanes of workers, polls, queues, spans, tasks, flags, wakes, stacks.
//!
//! * The size is bounded, whatever the trace: a [`PageGrid`] adds up what every worker did in each of its columns, and beside
//!   it only the longest polls and spans are there one by one. [`PageCounts`] says how many of how many.
//! * Times are nanoseconds since [`TokioPage::origin_ns`], which are exact in a double; those of [`TokioPage::report`] are on
//!   the clock of the trace.
//! * Rows refer to [`TokioPage::places`], [`TokioPage::texts`] and each other by index. -1 is none.

use serde::{Serialize, Serializer};

use super::view::{Severity, TokioView};

/// The page of a trace, or of one source of several.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct TokioPage {
    /// The time from which times count, on the clock of the trace. Serialized as text, because it needs 64 bits.
    #[serde(serialize_with = "as_text")]
    pub origin_ns: u64,
    /// The end of the trace.
    pub end_ns: i64,
    /// The columns of all lanes and series.
    pub grid: PageGrid,
    /// The workers by number.
    pub lanes: Vec<PageLane>,
    /// The longest polls, and the longest one of each lane in each column; by lane, then by start.
    pub polls: PagePolls,
    /// Wakes by the polls above, by time.
    pub wakes: PageWakes,
    /// The greatest length of the global queues in each column; empty if it was not sampled.
    pub queue: Vec<i64>,
    /// The greatest number of tasks alive in each column; empty if it is not known.
    pub alive: Vec<i64>,
    /// The longest spans of each name, by start.
    pub spans: PageSpans,
    /// Tasks: first those alive at the end, then by time in polls.
    pub tasks: Vec<PageTask>,
    /// The flags, the most severe first, as in [`TokioView::findings`].
    pub flags: Vec<PageFlag>,
    /// The most frequent stacks of samples.
    pub stacks: Vec<PageStack>,
    /// Samples taken in polls or on workers, by time.
    pub samples: PageSamples,
    /// Where tasks were spawned.
    pub places: Vec<String>,
    /// Names of spans and of functions, and the fields of spans.
    pub texts: Vec<String>,
    /// How much of the trace is there one by one.
    pub counts: PageCounts,
    /// The report, for its tables and its numbers.
    pub report: TokioView,
}

/// The columns of lanes and series: equal stretches of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PageGrid {
    /// The start of the first column.
    pub first_ns: i64,
    /// The length of a column.
    pub column_ns: u64,
    /// The number of columns.
    pub columns: usize,
}

/// A worker. Shape: one value for each column.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PageLane {
    /// Its number.
    pub worker: u64,
    /// The time in polls.
    pub busy_ns: Vec<u64>,
    /// The number of polls that began.
    pub polls: Vec<u32>,
    /// The longest of the polls that began, as an index of [`TokioPage::polls`].
    pub longest: Vec<i64>,
    /// The time parked.
    pub parked_ns: Vec<u64>,
    /// The time waiting for a CPU after a park.
    pub waited_ns: Vec<u64>,
    /// The greatest length of its own queue.
    pub queue: Vec<u64>,
}

/// Polls, as columns of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PagePolls {
    /// The lane, as an index of [`TokioPage::lanes`].
    pub lane: Vec<i64>,
    /// The start.
    pub start_ns: Vec<i64>,
    /// The duration.
    pub duration_ns: Vec<u64>,
    /// The task's number.
    pub task: Vec<u64>,
    /// Where the task was spawned, as an index of [`TokioPage::places`].
    pub place: Vec<u32>,
    /// The last wake of the task before the poll; -1 in place of a time if there is none.
    pub woken_ns: Vec<i64>,
    /// The task that woke it; 0 if it was woken from outside any task.
    pub waker: Vec<u64>,
    /// The polls that were still running at the end of the trace, as indexes of this table.
    pub open: Vec<usize>,
}

/// Wakes, as columns of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct PageWakes {
    /// The time.
    pub time_ns: Vec<i64>,
    /// The poll in which it happened, as an index of [`TokioPage::polls`].
    pub poll: Vec<usize>,
    /// The number of the task that was woken.
    pub woken: Vec<u64>,
}

/// Spans, as columns of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PageSpans {
    /// The name, as an index of [`TokioPage::texts`].
    pub name: Vec<usize>,
    /// The start.
    pub start_ns: Vec<i64>,
    /// The time from the first entry to the last exit.
    pub duration_ns: Vec<u64>,
    /// The fields, such as `route=/a status=200`, as an index of [`TokioPage::texts`]; -1 if there are none.
    pub fields: Vec<i64>,
}

/// A task.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PageTask {
    /// Its number.
    pub task: u64,
    /// Where it was spawned, as an index of [`TokioPage::places`].
    pub place: u32,
    /// When it was spawned; `None` if that was before the trace.
    pub spawned_ns: Option<i64>,
    /// When it ended; `None` if it was alive at the end.
    pub ended_ns: Option<i64>,
    /// The number of its polls that ended.
    pub polls: u64,
    /// The time in them.
    pub busy_ns: u64,
    /// The longest one.
    pub longest_ns: u64,
}

/// A red flag, and the moment to look at.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PageFlag {
    /// Its severity.
    pub severity: Severity,
    /// The check that found it.
    pub check: &'static str,
    /// A description with the numbers.
    pub evidence: String,
    /// The time to look at, if there is one.
    pub time_ns: Option<i64>,
    /// The worker to look at.
    pub worker: Option<u64>,
    /// The task to look at.
    pub task: Option<u64>,
}

/// A stack of samples.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct PageStack {
    /// The functions, leaf first, as indexes of [`TokioPage::texts`].
    pub functions: Vec<usize>,
    /// The number of samples on the CPU.
    pub on_cpu: u64,
    /// The number of off-CPU samples.
    pub off_cpu: u64,
}

/// Samples, as columns of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct PageSamples {
    /// The time.
    pub time_ns: Vec<i64>,
    /// The poll in which it was taken, as an index of [`TokioPage::polls`].
    pub poll: Vec<i64>,
    /// The stack, as an index of [`TokioPage::stacks`]; -1 if it is a rare one.
    pub stack: Vec<i64>,
    /// Whether it is an off-CPU sample: 0 or 1.
    pub is_off_cpu: Vec<u8>,
}

/// How many things the trace has, and how many of them the page has one by one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PageCounts {
    /// The polls of the trace, and those in [`TokioPage::polls`].
    pub polls: (u64, u64),
    /// The spans of the trace, and those in [`TokioPage::spans`].
    pub spans: (u64, u64),
    /// The tasks of the trace, and those in [`TokioPage::tasks`].
    pub tasks: (u64, u64),
    /// The wakes of the trace, and those that were searched for the polls above.
    pub wakes: (u64, u64),
    /// The samples of the trace, and those in [`TokioPage::samples`].
    pub samples: (u64, u64),
    /// The workers of the trace, and those in [`TokioPage::lanes`].
    pub workers: (u64, u64),
}

fn as_text<S: Serializer>(number: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(number)
}
