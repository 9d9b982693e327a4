//! The results of queries: plain data, ready to be drawn or serialized.

use std::sync::Arc;

use borehole_model::{LaneId, Mode, ValueType};
use serde::Serialize;

use crate::frame_name::FrameName;
use crate::json;
use crate::ranking::Basis;

/// The result of a [`Query`](crate::Query).
///
/// Serialized, absent tables have no keys. Times are [wall times](ReportView::keep_wall_times).
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ReportView {
    /// The profile as a whole.
    pub summary: ProfileSummary,
    /// Frames by self: the leaf of each sample.
    #[serde(rename = "self")]
    pub self_table: ReportTable,
    /// Frames by total: each frame of a sample once.
    #[serde(rename = "total")]
    pub total_table: ReportTable,
    /// Thread states of the samples with a frame on the stack; `None` if the source does not record them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub states: Option<StateTable>,
    /// Callers of the frames that match the query's pattern; `<root>` if there is no caller.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub callers: Option<ReportTable>,
    /// Callees of the frames that match the query's pattern; `<leaf>` if the frame is the leaf.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub callees: Option<ReportTable>,
    /// The last samples that count, oldest first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<Vec<RecentRun>>,
    /// Samples by something other than frames.
    #[serde(rename = "by", skip_serializing_if = "Option::is_none")]
    pub breakdown: Option<Breakdown>,
}

impl ReportView {
    /// Removes all times, in the summary and in shares, unless they are wall times according to [`ProfileSummary::mode`].
    ///
    /// Serialized views have keys for wall times only; times of other modes are values with a value type.
    pub fn keep_wall_times(&mut self) {
        if self.summary.mode == Mode::Wall {
            return;
        }
        self.summary.time_ns = None;
        let tables = [&mut self.self_table, &mut self.total_table].into_iter();
        for table in tables.chain(&mut self.callers).chain(&mut self.callees) {
            table.rows.iter_mut().for_each(|row| row.share.time_ns = None);
        }
        match &mut self.breakdown {
            Some(Breakdown::Samples { rows, .. }) => {
                rows.iter_mut().for_each(|row| row.share.time_ns = None);
            }
            Some(Breakdown::Frames { rows, .. }) => rows.iter_mut().for_each(|row| {
                (row.self_share.time_ns, row.total_share.time_ns) = (None, None);
            }),
            None => {}
        }
    }
}

/// A profile as a whole.
///
/// Serialized, its value type becomes the keys `value_type` and `unit`, and [`ProfileSummary::time_ns`] becomes `wall_ns`
/// ([wall time only](ReportView::keep_wall_times)). Absent values and empty lists have no key.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ProfileSummary {
    /// Samples read, without the [hidden](ProfileSummary::hidden) ones.
    pub samples: u64,
    /// Samples that match the patterns of the query.
    pub matched: u64,
    /// The value of the matched samples. Percentages are relative to it, except if only some samples have a period.
    #[serde(serialize_with = "json::signed")]
    pub value: i128,
    /// The value type: the time of samples if all have a period, their count if some have none, or that of their own values.
    /// Times are in nanoseconds.
    #[serde(flatten, serialize_with = "json::value_type")]
    pub value_type: ValueType,
    /// Whether values come from the profile or were asked for, rather than computed from counts of samples.
    pub is_valued: bool,
    /// Whether the number of observations per sample is unknown; each sample is then one record.
    pub is_uncounted: bool,
    /// The mode of the times of samples.
    #[serde(skip)]
    pub mode: Mode,
    /// The value types that could be used instead.
    #[serde(serialize_with = "json::value_type_names", skip_serializing_if = "Vec::is_empty")]
    pub other_value_types: Vec<ValueType>,
    /// The value types of hidden samples, which lack the chosen one, and how many samples each has. Incomplete if there are
    /// very many types.
    #[serde(serialize_with = "json::hidden", skip_serializing_if = "Vec::is_empty")]
    pub hidden: Vec<(ValueType, u64)>,
    /// The number of hidden samples.
    pub hidden_samples: u64,
    /// Samples with an empty stack, which are in no row.
    pub empty: u64,
    /// The values of samples with an empty stack, which [`ProfileSummary::value`] leaves out; 0 if samples are counted, or have no
    /// values but their periods.
    #[serde(serialize_with = "json::signed", skip_serializing_if = "json::is_zero")]
    pub empty_value: i128,
    /// Samples whose stack is as deep as the source allows, so that outer frames may be missing.
    #[serde(rename = "samples_at_depth_limit")]
    pub at_depth_limit: u64,
    /// The depth limit; the largest one if there are several sources. `None` if no sample reaches it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub depth_limit: Option<u32>,
    /// The time that all samples stand for, each for the period of its segment, in the mode [`ProfileSummary::mode`]; `None` if
    /// no segment has a period.
    #[serde(rename = "wall_ns", serialize_with = "json::time", skip_serializing_if = "Option::is_none")]
    pub time_ns: Option<u128>,
    /// The periods in order of first use, with the number of samples of each. At most [`ProfileSummary::MAX_PERIODS`] are
    /// listed.
    pub periods: Vec<PeriodSamples>,
    /// Samples of segments without a period. They add nothing to any time.
    #[serde(rename = "samples_without_period")]
    pub without_period: u64,
    /// Segments.
    pub segments: u64,
    /// Distinct stacks sampled.
    pub stacks: usize,
    /// Distinct frames that count, as distinguished by the query.
    pub frames: usize,
    /// Distinct known processes.
    pub processes: usize,
    /// Distinct known threads.
    pub threads: usize,
    /// Samples with a timestamp.
    #[serde(rename = "samples_with_time")]
    pub timed: u64,
    /// The time from the first to the last timestamp, summed over inputs; `None` if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub span_ns: Option<u64>,
    /// The number of warnings of the reader.
    pub warnings: u64,
    /// Bytes of the input that could not be used.
    pub lost_bytes: u64,
}

impl ProfileSummary {
    /// The maximum number of distinct periods listed: more than any genuine profile has, and few enough for a file that
    /// consists of segments only.
    pub const MAX_PERIODS: usize = 64;

    /// Whether all samples have a period.
    pub(crate) const fn has_all_periods(&self) -> bool {
        self.time_ns.is_some() && self.without_period == 0
    }

    /// The number that rows are sorted by and that percentages are relative to. With a single period, counts are
    /// equivalent to times.
    pub(crate) fn basis(&self) -> Basis {
        if self.is_valued || self.periods.len() > 1 { self.values() } else { Basis::Count }
    }

    /// The number of a tally that is its value.
    pub(crate) fn values(&self) -> Basis {
        if self.is_valued || !self.value_type.is_samples() { Basis::Value } else { Basis::Count }
    }

    /// The number of samples per second, counting those with a timestamp; `None` if they span no time.
    // The result is shown with one decimal, so the precision of a double is enough.
    #[expect(clippy::cast_precision_loss)]
    #[must_use]
    pub fn samples_per_second(&self) -> Option<f64> {
        let span_ns = self.span_ns.filter(|&span_ns| span_ns > 0)?;
        // The span goes from the first to the last sample, so it contains one interval fewer than there are samples.
        Some(self.timed.saturating_sub(1) as f64 * 1e9 / span_ns as f64)
    }
}

/// The number of samples with one period.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct PeriodSamples {
    /// The period in nanoseconds.
    pub period_ns: u64,
    /// The number of samples.
    pub samples: u64,
}

/// The rows of a table, limited to the number asked for.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct LimitedRows<T> {
    /// The rows.
    pub rows: Vec<T>,
    /// The number of rows without that limit.
    pub distinct: usize,
}

impl<T> LimitedRows<T> {
    /// The first `limit` of `all`, each as a row.
    pub(crate) fn new<A>(all: Vec<A>, limit: usize, row: impl FnMut(A) -> T) -> Self {
        Self { distinct: all.len(), rows: all.into_iter().take(limit).map(row).collect() }
    }
}

/// Frames by count, largest first; equal ones in order of first appearance.
pub type ReportTable = LimitedRows<ReportRow>;

/// A frame and its share. Serialized, it has the keys of both.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ReportRow {
    /// The frame.
    #[serde(flatten, serialize_with = "json::shared")]
    pub frame: Arc<FrameName>,
    /// Its share of the samples that count.
    #[serde(flatten)]
    pub share: Share,
}

/// Frames with thread states, in the order of [`ReportView::total_table`].
pub type StateTable = LimitedRows<StateRow>;

/// A frame and the thread states of the samples that have it on the stack. Serialized, it has the keys of both, and
/// `count`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct StateRow {
    /// The frame.
    #[serde(flatten, serialize_with = "json::shared")]
    pub frame: Arc<FrameName>,
    /// The number of samples with the frame on the stack.
    pub count: u64,
    /// The states of their threads.
    #[serde(flatten)]
    pub states: ThreadStates,
}

/// Percentages, 0 to 100, of samples in each thread state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct ThreadStates {
    /// Holding the GIL.
    pub has_gil: f64,
    /// On a CPU; `None` if that was not recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_cpu: Option<f64>,
    /// Waiting for the GIL.
    #[serde(rename = "gil_requested")]
    pub waits_for_gil: f64,
    /// With an exception.
    pub has_exception: f64,
    /// Collecting garbage.
    pub in_gc: f64,
}

/// A part of the samples that count.
///
/// Serialized, [`Share::time_ns`] becomes `wall_ns` ([wall time only](ReportView::keep_wall_times)), which has no key if
/// absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Share {
    /// The number of samples.
    pub count: u64,
    /// The percentage of all samples that count, 0 to 100.
    pub percent: f64,
    /// The value, in the profile's [value type](ProfileSummary::value_type).
    #[serde(serialize_with = "json::signed")]
    pub value: i128,
    /// The time that the samples stand for; `None` if the profile does not say, or values are something else.
    #[serde(rename = "wall_ns", serialize_with = "json::time", skip_serializing_if = "Option::is_none")]
    pub time_ns: Option<u128>,
}

/// A run of equal samples at the end of a profile.
///
/// Serialized, labels are pairs, process and thread are `pid` and `tid`, and unknown values have no key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct RecentRun {
    /// The number of samples.
    pub count: u64,
    /// The number of samples after the last one of the run: 0 is "now".
    pub age: u64,
    /// The visible frames, leaf first, at most as many as the query allows.
    #[serde(rename = "frames", serialize_with = "json::shared_list")]
    pub frames_leaf_first: Vec<Arc<FrameName>>,
    /// The number of frames without that limit.
    pub depth: usize,
    /// The labels, in order.
    #[serde(serialize_with = "json::labels")]
    pub labels: Vec<(Vec<u8>, LabelText)>,
    /// The process, if known.
    #[serde(rename = "pid", serialize_with = "json::process", skip_serializing_if = "Option::is_none")]
    pub process: Option<i64>,
    /// The thread, if known.
    #[serde(rename = "tid", serialize_with = "json::thread", skip_serializing_if = "Option::is_none")]
    pub thread: Option<u64>,
    /// The time on the profile's clock, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_ns: Option<i64>,
}

/// The value of a label. Serialized, it is a text, a number, or an object of `number` and `unit`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(untagged)]
pub enum LabelText {
    /// A text.
    Text(#[serde(serialize_with = "json::text")] Vec<u8>),
    /// A number, with its unit if known.
    #[serde(serialize_with = "json::quantity")]
    Number(i64, Option<Vec<u8>>),
}

/// Samples by something other than frames, largest count first. Serialized, it is a table of either kind.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Breakdown {
    /// By a property of whole samples: a label, a process, a thread.
    Samples {
        /// The rows, at most as many as the query allows.
        rows: Vec<SampleGroup>,
        /// The number of rows without that limit.
        distinct: usize,
    },
    /// By a property of frames: a file, a class.
    Frames {
        /// The rows, sorted by self and then by total, at most as many as the query allows.
        rows: Vec<FrameGroup>,
        /// The number of rows without that limit.
        distinct: usize,
    },
}

/// The samples with one value. Serialized, it has the keys of value and share.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct SampleGroup {
    /// The value.
    #[serde(flatten)]
    pub value: GroupValue,
    /// Its share.
    #[serde(flatten)]
    pub share: Share,
}

/// The common value of a group of samples. Serialized, its keys are beside those of the group's share;
/// [`GroupValue::Absent`] has none.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub enum GroupValue {
    /// The value of a label.
    #[serde(rename = "label")]
    Label(LabelText),
    /// A process.
    #[serde(rename = "pid")]
    Process(#[serde(serialize_with = "json::process")] i64),
    /// An interpreter.
    #[serde(rename = "interpreter")]
    Interpreter(u64),
    /// A thread.
    #[serde(untagged)]
    Thread {
        /// Its process, if known.
        #[serde(rename = "pid", serialize_with = "json::process", skip_serializing_if = "Option::is_none")]
        process: Option<i64>,
        /// The thread.
        #[serde(rename = "tid", serialize_with = "json::thread")]
        thread: u64,
        /// Its name, if known.
        #[serde(serialize_with = "json::text", skip_serializing_if = "Option::is_none")]
        name: Option<Vec<u8>>,
    },
    /// The samples have no such label, or their process or thread is unknown.
    #[serde(untagged)]
    Absent,
}

impl GroupValue {
    /// Whether both values are the same. Threads are compared without their names.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        let thread = |value: &Self| match *value {
            Self::Thread { process, thread, .. } => Some((process, thread)),
            _ => None,
        };
        thread(self).map_or(self == other, |here| Some(here) == thread(other))
    }

    /// The value in words; `None` if it is absent. `printable` formats names, labels and units.
    pub fn text(&self, printable: impl Fn(&[u8]) -> String) -> Option<String> {
        let suffix = |text: &Option<Vec<u8>>| {
            text.as_ref().map(|text| format!(" {}", printable(text))).unwrap_or_default()
        };
        Some(match self {
            Self::Absent => return None,
            Self::Label(LabelText::Text(text)) => printable(text),
            Self::Label(LabelText::Number(number, unit)) => format!("{number}{}", suffix(unit)),
            Self::Process(process) => format!("process {}", LaneId::of_process(*process)),
            Self::Interpreter(interpreter) => format!("interpreter {interpreter}"),
            Self::Thread { process, thread, name } => {
                let of = process.map(|process| format!(" of {}", LaneId::of_process(process)));
                format!("thread {}{}{}", LaneId::of(*thread), of.unwrap_or_default(), suffix(name))
            }
        })
    }
}

/// The samples in frames of one file or class.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FrameGroup {
    /// The file or class; `None` for frames without one.
    #[serde(serialize_with = "json::text", skip_serializing_if = "Option::is_none")]
    pub name: Option<Vec<u8>>,
    /// Self: samples whose leaf is in it.
    #[serde(rename = "self")]
    pub self_share: Share,
    /// Total: samples with any frame in it.
    #[serde(rename = "total")]
    pub total_share: Share,
}
