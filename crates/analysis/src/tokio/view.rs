//! The view of a Tokio program: plain data, ready to be drawn or serialized. Serialized, unknown values are null.
//!
//! Times are nanoseconds on the clock of the trace, which begins at [`TokioView::start_ns`].

use borehole_text::named;
use serde::Serialize;

use crate::json;
pub use crate::view::LimitedRows;

pub(super) use super::activity::{
    AliveCounts, Delay, DelayView, LongPoll, PlaceRow, PollView, TaskPlaceRow, TaskView, WakeView, WorkerRow,
};

/// The analysis of a trace of a Tokio program. Serialized, its source is `input`, which has no key if it is absent.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct TokioView {
    /// The name of its source, if sources are kept apart.
    #[serde(rename = "input", skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The time of the first runtime event.
    pub start_ns: u64,
    /// The time of the last runtime event.
    pub end_ns: u64,
    /// The offset from a time to nanoseconds since 1970, if the trace records it.
    #[serde(serialize_with = "json::offset")]
    pub unix_offset_ns: Option<i128>,
    /// The number of events read.
    pub events: u64,
    /// Whether the recorder marked the file as complete.
    pub seal: Seal,
    /// The tasks whose polls were recorded.
    pub poll_coverage: PollCoverage,
    /// The kinds of events in the trace.
    pub contents: Contents,
    /// The number of events that the recorder counted as lost, because they came faster than it could take them.
    pub lost_events: u64,
    /// Things of which only a part was followed, because there were more than the limits allow; usually empty.
    pub limits: Vec<LimitRow>,
    /// The findings, the most severe first.
    pub findings: Vec<TokioFinding>,
    /// Workers by number.
    pub workers: Vec<WorkerRow>,
    /// Polls.
    pub polls: PollView,
    /// Tasks.
    pub tasks: TaskView,
    /// The delays of tasks from wake to poll.
    pub delays: DelayView,
    /// Wakes.
    pub wakes: WakeView,
    /// CPU samples.
    pub cpu: PollSampleView,
    /// Off-CPU samples.
    pub blocking: PollSampleView,
    /// The global queue; `None` if it was not sampled.
    pub queue: Option<QueueView>,
    /// Spans by name, the name with the longest total first.
    pub spans: LimitedRows<SpanRow>,
    /// The number of spans of all names.
    pub span_count: u64,
    /// Sampled allocations; `None` if there are none.
    pub allocations: Option<AllocationView>,
    /// Other events by name, the most frequent first.
    pub other_events: LimitedRows<EventRow>,
}

/// Things of which only a part was followed, to bound memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LimitRow {
    /// The things, such as `tasks`.
    pub what: &'static str,
    /// The number of those that were followed.
    pub followed: u64,
    /// The number of those that were not, and are missing from tables and checks.
    pub left_out: u64,
}

/// Whether a recorder completed its file: serialized, in lower case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Seal {
    /// The file has no seal: the process may have been killed.
    #[default]
    Absent,
    /// The file holds everything that was recorded.
    Complete,
    /// The file was sealed before all threads had handed over what they recorded.
    Incomplete,
}

/// The tasks whose polls a recorder sees: serialized, in lower case.
///
/// Source: `tokio.poll_coverage` of dial9 0.5.7, which is `all`, or `dial9-spawns-only` without `tokio_unstable`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PollCoverage {
    /// The trace does not say.
    #[default]
    Unknown,
    /// All tasks.
    All,
    /// Tasks that were spawned through the recorder. Others may keep workers busy unseen.
    Spawned,
}

impl PollCoverage {
    /// The coverage that metadata states. All values but `all` are of a part: dial9 0.5.7 calls it `dial9-spawns-only`.
    pub(super) fn of(value: &str) -> Self {
        if value == "all" { Self::All } else { Self::Spawned }
    }
}

/// The kinds of events in a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Contents {
    /// The number of events of the runtime: polls, parks, wakes, tasks and its measurements.
    pub runtime: u64,
    /// The number of samples of stacks, on and off the CPU.
    pub cpu_samples: u64,
    /// The number of events of allocations.
    pub allocations: u64,
    /// The number of events of spans.
    pub spans: u64,
    /// The number of other events.
    pub custom: u64,
}

impl Contents {
    /// The name of the only kind; `None` if there are several, or no events.
    #[must_use]
    pub fn only(&self) -> Option<&'static str> {
        let Self { runtime, cpu_samples, allocations, spans, custom } = *self;
        let all = [
            (runtime, "events of the runtime"),
            (cpu_samples, "CPU samples"),
            (allocations, "allocations"),
            (spans, "spans"),
            (custom, "custom events"),
        ];
        let mut kinds = all.into_iter().filter(|(count, _)| *count > 0);
        let (_, only) = kinds.next()?;
        kinds.next().is_none().then_some(only)
    }
}

/// The severity of a finding, in ascending order: serialized, its [name](Severity::name).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Severity {
    /// Good to know.
    Info,
    /// Something is likely wrong.
    Warning,
    /// Something is wrong.
    Critical,
}

impl Severity {
    /// All of them.
    pub const ALL: &'static [Self] = &[Self::Info, Self::Warning, Self::Critical];

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

named!(Severity, "severity");

/// A finding of a check.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TokioFinding {
    /// Its severity.
    pub severity: Severity,
    /// The check that found it.
    pub check: &'static str,
    /// A description with the numbers.
    pub evidence: String,
    /// The time to look at, if there is one.
    pub time_ns: Option<u64>,
    /// The worker to look at.
    pub worker: Option<u64>,
    /// The task to look at.
    pub task: Option<u64>,
}

/// A distribution, in nanoseconds. Percentiles are accurate to 1 in 128.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Spread {
    /// The number of values.
    pub count: u64,
    /// Their sum.
    pub sum_ns: u64,
    /// The smallest.
    pub min_ns: u64,
    /// The mean.
    pub mean_ns: u64,
    /// The median.
    pub p50_ns: u64,
    /// The 90th percentile.
    pub p90_ns: u64,
    /// The 99th percentile.
    pub p99_ns: u64,
    /// The largest.
    pub max_ns: u64,
    /// The values that bound the percentiles.
    #[serde(skip)]
    pub(super) bounds: QuantileBounds,
}

/// The values at the ranks around percentiles, which are as likely the true ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct QuantileBounds {
    pub(super) p50_ns: (u64, u64),
    pub(super) p99_ns: (u64, u64),
}

/// The samples of threads in a trace, either on the CPU or off it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct PollSampleView {
    /// The number of all samples.
    pub samples: u64,
    /// The number of samples during a poll: off the CPU, those that were blocked. The other samples are of workers between polls, or of other threads.
    pub in_polls: u64,
    /// The samples in polls by stack, the most frequent first.
    pub stacks: LimitedRows<PollSampleRow>,
    /// The samples in polls by where the task was spawned.
    pub places: LimitedRows<PollSamplePlaceRow>,
}

/// A stack of samples in polls.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct PollSampleRow {
    /// The number of samples.
    pub count: u64,
    /// The time of the first one.
    pub first_ns: u64,
    /// The leaf function.
    pub leaf: String,
    /// The innermost function outside the kernel.
    pub call: String,
    /// The functions from there on outwards, by their short names.
    pub callers: Vec<String>,
}

/// The tasks spawned at one place, with samples in their polls.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct PollSamplePlaceRow {
    /// The place.
    pub spawned_at: String,
    /// The number of samples.
    pub count: u64,
}

/// The global queues of all runtimes together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct QueueView {
    /// The number of observations.
    pub samples: u64,
    /// The mean length.
    pub mean: f64,
    /// The greatest length.
    pub max: u64,
    /// The first time of the greatest length.
    pub max_ns: u64,
    /// The number of observations longer than 100.
    #[serde(rename = "over_100")]
    pub high: u64,
}

/// The spans of one name.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct SpanRow {
    /// The name.
    pub name: String,
    /// The value of the field by which spans are grouped; `None` without grouping, and for spans without that field.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// The durations from first entry to last exit.
    pub durations: Spread,
    /// The total time entered.
    pub busy_ns: u64,
    /// The number of spans more than ten times as long as the median, if there are at least ten spans.
    pub outliers: u64,
    /// The start of the longest one.
    pub longest_start_ns: u64,
    /// The number of spans that were entered and never exited.
    pub unmatched: u64,
}

impl SpanRow {
    /// The name, with the value of the field by which spans are grouped.
    #[must_use]
    pub fn full_name(&self) -> String {
        with_group(&self.name, self.group.as_deref())
    }
}

fn with_group(name: &str, group: Option<&str>) -> String {
    group.map_or_else(|| name.to_owned(), |group| format!("{name} [{group}]"))
}

/// The sampled allocations of a trace.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct AllocationView {
    /// The number of sampled allocations.
    pub allocations: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The number of them that were freed.
    pub freed: u64,
    /// The number of them that were not freed.
    pub outstanding: u64,
    /// The bytes of those.
    pub outstanding_bytes: u64,
    /// The estimated bytes in the program that those stand for.
    pub estimated_outstanding_bytes: f64,
    /// The number of events that the recorder dropped.
    pub dropped: u64,
    /// The outstanding allocations by stack, the most bytes first.
    pub sites: LimitedRows<SiteRow>,
}

/// A stack with outstanding allocations.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SiteRow {
    /// The number of allocations.
    pub count: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The time of the first one.
    pub first_ns: u64,
    /// The functions from the leaf outwards, by their short names.
    pub callers: Vec<String>,
}

/// The events of one name.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct EventRow {
    /// The name.
    pub name: String,
    /// The value of the text by which events are grouped; `None` without grouping, and for events without that text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// The number of events.
    pub count: u64,
    /// The rate per second from the first to the last; `None` if there is no time between them.
    pub per_second: Option<f64>,
    /// The numeric fields.
    pub fields: Vec<FieldRow>,
    /// The texts.
    pub texts: Vec<TextRow>,
}

impl EventRow {
    /// The name, with the value of the text by which events are grouped.
    #[must_use]
    pub fn full_name(&self) -> String {
        with_group(&self.name, self.group.as_deref())
    }
}

/// A text of events of one name.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct TextRow {
    /// Its name.
    pub name: String,
    /// The number of events that have it.
    pub count: u64,
    /// The number of different values; beyond 64, further ones count as one, `(others)`.
    pub distinct: usize,
    /// The most frequent values.
    pub values: Vec<TextValueRow>,
}

/// A value of a text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TextValueRow {
    /// The value.
    pub value: String,
    /// The number of events that have it.
    pub count: u64,
}

/// A field of events of one name. Percentiles are accurate to 1 in 64.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct FieldRow {
    /// Its name.
    pub name: String,
    /// Its unit, if the trace records it.
    pub unit: Option<String>,
    /// Its kind, `gauge` or `counter`, if the trace records it.
    pub kind: Option<String>,
    /// The number of values.
    pub count: u64,
    /// The smallest.
    pub min: f64,
    /// The mean.
    pub mean: f64,
    /// The median.
    pub p50: f64,
    /// The 90th percentile.
    pub p90: f64,
    /// The 99th percentile.
    pub p99: f64,
    /// The largest.
    pub max: f64,
    /// For a counter, its growth per second; for others, values per second.
    pub per_second: Option<f64>,
}
