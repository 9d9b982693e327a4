//! What is known of a Tokio program: plain data, ready to be drawn or serialized. Serialized, what is unknown is null.
//!
//! Times are nanoseconds on the clock of the trace, which begins at [`TokioView::start_ns`].

use serde::Serialize;

use crate::json;

pub(super) use super::activity::{
    AliveCounts, Delay, DelayView, LongPoll, PlaceRow, PollView, TaskPlaceRow, TaskView, WakeView, WorkerRow,
};

/// What a trace tells of a Tokio program. Serialized, its source is `input`, which has no key where it is absent.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct TokioView {
    /// What the source is called that it is of, where sources are kept apart.
    #[serde(rename = "input", skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The first moment that an event of the runtime tells of.
    pub start_ns: u64,
    /// The last one.
    pub end_ns: u64,
    /// What is to be added to a time for nanoseconds since 1970, if the trace says.
    #[serde(serialize_with = "json::offset")]
    pub unix_offset_ns: Option<i128>,
    /// Events that were read.
    pub events: u64,
    /// Whether the recorder said that it completed the file.
    pub seal: Seal,
    /// Events that were not recorded, as the recorder counted them: they came faster than it could take them.
    pub lost_events: u64,
    /// What deserves a look, the gravest first.
    pub findings: Vec<Finding>,
    /// Workers by number.
    pub workers: Vec<WorkerRow>,
    /// Polls.
    pub polls: PollView,
    /// Tasks.
    pub tasks: TaskView,
    /// How long tasks waited from being woken to being polled.
    pub delays: DelayView,
    /// Wakes.
    pub wakes: WakeView,
    /// Samples of threads that left their CPU.
    pub blocking: BlockingView,
    /// The global queue; `None` where it was not sampled.
    pub queue: Option<QueueView>,
    /// Spans by name, the one that took longest in sum first.
    pub spans: Rows<SpanRow>,
    /// Spans of all names.
    pub span_count: u64,
    /// Sampled allocations; `None` where there are none.
    pub allocations: Option<AllocationView>,
    /// Events that are nothing special here, by name, the most frequent first.
    pub other_events: Rows<EventRow>,
}

/// Rows of a table, at most as many as are asked for.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Rows<T> {
    /// The rows.
    pub rows: Vec<T>,
    /// How many there are without that limit.
    pub distinct: usize,
}

/// Whether a recorder completed its file: serialized, in lower case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Seal {
    /// The file does not say: the process may have been killed.
    #[default]
    Absent,
    /// All that was recorded is in it.
    Complete,
    /// It was sealed before all threads had handed over what they recorded.
    Incomplete,
}

/// How grave a finding is, the gravest last: serialized, its [name](Severity::name).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Good to know.
    Info,
    /// Something is likely wrong.
    Warning,
    /// Something is wrong.
    Critical,
}

impl Severity {
    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Critical => "critical",
        }
    }
}

/// Something that deserves a look.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// How grave it is.
    pub severity: Severity,
    /// Which check found it.
    pub check: &'static str,
    /// What was found, with its numbers.
    pub evidence: String,
    /// When to look, if there is a time.
    pub time_ns: Option<u64>,
    /// Where to look.
    pub worker: Option<u64>,
    /// At which task to look.
    pub task: Option<u64>,
}

/// How something is distributed, in nanoseconds. Percentiles are right to 1 in 128.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Spread {
    /// How many.
    pub count: u64,
    /// All together.
    pub sum_ns: u64,
    /// The smallest.
    pub min_ns: u64,
    /// The mean.
    pub mean_ns: u64,
    /// The median.
    pub p50_ns: u64,
    /// What 90 in 100 do not exceed.
    pub p90_ns: u64,
    /// What 99 in 100 do not exceed.
    pub p99_ns: u64,
    /// The largest.
    pub max_ns: u64,
}

/// Samples of threads that left their CPU.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct BlockingView {
    /// All.
    pub samples: u64,
    /// Those during a poll: something blocked there. The rest is idle, or not of a worker.
    pub in_polls: u64,
    /// Those in polls by stack, the most frequent first.
    pub stacks: Rows<BlockingRow>,
    /// Those in polls by where the task was spawned.
    pub places: Rows<BlockingPlaceRow>,
}

/// A stack that blocked in polls.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct BlockingRow {
    /// How many samples.
    pub count: u64,
    /// The first of them.
    pub first_ns: u64,
    /// The innermost function.
    pub leaf: String,
    /// The innermost function outside the kernel.
    pub call: String,
    /// The functions from there on outwards, by their short names.
    pub callers: Vec<String>,
}

/// Where tasks were spawned that blocked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct BlockingPlaceRow {
    /// The place.
    pub spawned_at: String,
    /// How many samples.
    pub count: u64,
}

/// The global queues of all runtimes together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct QueueView {
    /// How often it was looked at.
    pub samples: u64,
    /// The mean length.
    pub mean: f64,
    /// The greatest length.
    pub max: u64,
    /// When it was so for the first time.
    pub max_ns: u64,
    /// How often it was longer than 100.
    #[serde(rename = "over_100")]
    pub high: u64,
}

/// Spans of one name.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SpanRow {
    /// The name.
    pub name: String,
    /// From the first entering to the last leaving.
    pub durations: Spread,
    /// How long they were entered, all together.
    pub busy_ns: u64,
    /// Those more than ten times as long as the median, if there are ten spans at least.
    pub outliers: u64,
    /// When the longest of them began.
    pub longest_start_ns: u64,
    /// Those that were entered and never left.
    pub unmatched: u64,
}

/// Sampled allocations.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct AllocationView {
    /// How many were sampled.
    pub allocations: u64,
    /// Their bytes.
    pub bytes: u64,
    /// How many of them were freed.
    pub freed: u64,
    /// How many were not.
    pub outstanding: u64,
    /// The bytes of those.
    pub outstanding_bytes: u64,
    /// All bytes of the program that those are likely to stand for.
    pub estimated_outstanding_bytes: f64,
    /// Events that the recorder dropped.
    pub dropped: u64,
    /// The outstanding ones by stack, the most bytes first.
    pub sites: Rows<SiteRow>,
}

/// A stack that allocated what is outstanding.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SiteRow {
    /// How many allocations.
    pub count: u64,
    /// Their bytes.
    pub bytes: u64,
    /// When the first was made.
    pub first_ns: u64,
    /// The functions from the innermost outwards, by their short names.
    pub callers: Vec<String>,
}

/// Events of one name.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct EventRow {
    /// The name.
    pub name: String,
    /// How many.
    pub count: u64,
    /// How many a second, from the first to the last; `None` where that is no time.
    pub per_second: Option<f64>,
    /// Its fields that are numbers.
    pub fields: Vec<FieldRow>,
}

/// A field of events of one name. Percentiles are right to 1 in 64.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct FieldRow {
    /// Its name.
    pub name: String,
    /// Its unit, if the trace says.
    pub unit: Option<String>,
    /// Its kind, `gauge` or `counter`, if the trace says.
    pub kind: Option<String>,
    /// How many values.
    pub count: u64,
    /// The smallest.
    pub min: f64,
    /// The mean.
    pub mean: f64,
    /// The median.
    pub p50: f64,
    /// What 90 in 100 do not exceed.
    pub p90: f64,
    /// What 99 in 100 do not exceed.
    pub p99: f64,
    /// The largest.
    pub max: f64,
    /// Of a counter: how much it grew a second. Of others: values a second.
    pub per_second: Option<f64>,
}
