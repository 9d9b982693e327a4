//! The answers: plain data, ready to be drawn or serialized.

use std::sync::Arc;

use borehole_model::{Mode, ValueType};
use serde::Serialize;

use crate::frame_name::FrameName;
use crate::json;
use crate::ranking::Basis;

/// What a [`Query`](crate::Query) found.
///
/// Serialized, tables that are absent have no keys. Times are [wall times](ReportView::keep_wall_times).
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ReportView {
    /// The profile as a whole.
    pub summary: Summary,
    /// Where samples were taken: the leaf of each.
    #[serde(rename = "self")]
    pub self_time: Table,
    /// What was executing, directly or through what it called: each frame of a sample once.
    #[serde(rename = "total")]
    pub total_time: Table,
    /// What threads were doing while a frame was on their stacks, for sources that know it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub states: Option<StateTable>,
    /// Who called the frames of the query's pattern; `<root>` where nobody did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub callers: Option<Table>,
    /// Whom the frames of the query's pattern called; `<leaf>` where they were executing themselves.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub callees: Option<Table>,
    /// The last samples that count, oldest first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<Vec<RecentRun>>,
    /// Samples by something else than frames.
    #[serde(rename = "by", skip_serializing_if = "Option::is_none")]
    pub breakdown: Option<Breakdown>,
}

impl ReportView {
    /// Forgets all times, of summary and shares, unless they are wall times, as [`Summary::mode`] says. A view that is serialized
    /// has keys for those only: times of other modes are values with a value type.
    pub fn keep_wall_times(&mut self) {
        if self.summary.mode == Mode::Wall {
            return;
        }
        self.summary.time_ns = None;
        let tables = [&mut self.self_time, &mut self.total_time].into_iter();
        for table in tables.chain(&mut self.callers).chain(&mut self.callees) {
            table.rows.iter_mut().for_each(|row| row.share.time_ns = None);
        }
        match &mut self.breakdown {
            Some(Breakdown::Samples { rows, .. }) => {
                rows.iter_mut().for_each(|row| row.share.time_ns = None);
            }
            Some(Breakdown::Frames { rows, .. }) => rows.iter_mut().for_each(|row| {
                (row.self_time.time_ns, row.total_time.time_ns) = (None, None);
            }),
            None => {}
        }
    }
}

/// A profile as a whole.
///
/// Serialized, its value type is the keys `value_type` and `unit`, [`Summary::time_ns`] is `wall_ns`
/// ([of wall time only](ReportView::keep_wall_times)), and what is absent or an empty list has no key.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// Samples that were read, without those that are [hidden](Summary::hidden).
    pub samples: u64,
    /// Samples that count under the patterns of the query.
    pub matched: u64,
    /// Their value: what percentages are of, unless samples without a period are among those with one.
    #[serde(serialize_with = "json::signed")]
    pub value: i128,
    /// What values are: the time of samples where all have a period, their count where some have none, or values of their own.
    /// Times are in nanoseconds.
    #[serde(flatten, serialize_with = "json::value_type")]
    pub value_type: ValueType,
    /// Whether values are numbers of the profile, or were asked for, rather than worked out from counts of samples.
    pub is_valued: bool,
    /// Whether it is unknown how many observations a sample is: then samples are records.
    pub is_uncounted: bool,
    /// What the time of samples is a time of.
    #[serde(skip)]
    pub mode: Mode,
    /// What could be added up instead.
    #[serde(serialize_with = "json::value_type_names", skip_serializing_if = "Vec::is_empty")]
    pub other_value_types: Vec<ValueType>,
    /// Of which kinds samples were hidden, and how many, for they have no such value. Not all kinds if these are very many.
    #[serde(serialize_with = "json::hidden", skip_serializing_if = "Vec::is_empty")]
    pub hidden: Vec<(ValueType, u64)>,
    /// All samples that were hidden.
    pub hidden_samples: u64,
    /// Samples with an empty stack.
    pub empty: u64,
    /// Samples whose stack is as deep as their source allows: it may have lost its outer frames.
    #[serde(rename = "samples_at_depth_limit")]
    pub at_depth_limit: u64,
    /// How many frames that is; the most, of several sources. `None` where there are no such samples.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub depth_limit: Option<u32>,
    /// How long the samples were, each as long as the period of its own segment, in the time of [`Summary::mode`]; `None`
    /// where no segment has one.
    #[serde(
        rename = "wall_ns",
        serialize_with = "json::optional_time",
        skip_serializing_if = "Option::is_none"
    )]
    pub time_ns: Option<u128>,
    /// The periods, in order of first use, with how many samples each. Periods beyond the first
    /// [`Summary::MAX_PERIODS`] are not listed.
    pub periods: Vec<PeriodSamples>,
    /// Samples of segments without a period: they add nothing to any time.
    #[serde(rename = "samples_without_period")]
    pub without_period: u64,
    /// Segments.
    pub segments: u64,
    /// Distinct stacks that were sampled.
    pub stacks: usize,
    /// Distinct frames that count, as the query tells them apart.
    pub frames: usize,
    /// Distinct processes that are named.
    pub processes: usize,
    /// Distinct threads that are named.
    pub threads: usize,
    /// Samples that say when they were taken.
    #[serde(rename = "samples_with_time")]
    pub timed: u64,
    /// From the first to the last of them; summed over inputs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub span_ns: Option<u64>,
    /// What the reader found odd or lost.
    pub warnings: u64,
    /// Bytes of the input that could not be used.
    pub lost_bytes: u64,
}

impl Summary {
    /// How many distinct periods are listed: more than any honest profile has, few enough for a file that
    /// is made of segments alone.
    pub const MAX_PERIODS: usize = 64;

    /// Whether all samples have a period.
    pub(crate) const fn has_all_periods(&self) -> bool {
        self.time_ns.is_some() && self.without_period == 0
    }

    /// What rows are sorted by, and percentages are of. Counts say the same as times where there is one period.
    pub(crate) fn basis(&self) -> Basis {
        if self.is_valued || self.periods.len() > 1 { self.values() } else { Basis::Count }
    }

    /// Which number of a tally is a value.
    pub(crate) fn values(&self) -> Basis {
        if self.is_valued || !self.value_type.is_samples() { Basis::Value } else { Basis::Count }
    }

    /// How many samples there were a second, of those that say when they were taken; `None` where fewer than two do.
    // Tenths have no use for the digits that a double lacks.
    #[expect(clippy::cast_precision_loss)]
    #[must_use]
    pub fn samples_per_second(&self) -> Option<f64> {
        let span_ns = self.span_ns.filter(|&span_ns| span_ns > 0)?;
        // The span is from the first sample to the last: one less than there are samples.
        Some(self.timed.saturating_sub(1) as f64 * 1e9 / span_ns as f64)
    }
}

/// How many samples were taken with one period.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct PeriodSamples {
    /// The period.
    pub period_ns: u64,
    /// The samples.
    pub samples: u64,
}

/// Frames by count, the largest first; equal ones in order of first appearance.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Table {
    /// The rows, at most as many as the query allows.
    pub rows: Vec<Row>,
    /// How many rows there are without that limit.
    pub distinct: usize,
}

/// A frame and its share: serialized, the keys of both.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// The frame.
    #[serde(flatten, serialize_with = "json::shared")]
    pub frame: Arc<FrameName>,
    /// Its share of the samples that count.
    #[serde(flatten)]
    pub share: Share,
}

/// Frames with the states of threads, in the order of [`ReportView::total_time`].
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct StateTable {
    /// The rows, at most as many as the query allows.
    pub rows: Vec<StateRow>,
    /// How many rows there are without that limit.
    pub distinct: usize,
}

/// A frame and what threads were doing while it was on their stacks: serialized, the keys of both beside `count`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StateRow {
    /// The frame.
    #[serde(flatten, serialize_with = "json::shared")]
    pub frame: Arc<FrameName>,
    /// In how many samples it was on the stack.
    pub count: u64,
    /// What they were doing then.
    #[serde(flatten)]
    pub states: ThreadStates,
}

/// In how many of some samples, 0 to 100, threads were in each of these states.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct ThreadStates {
    /// They had the GIL.
    pub has_gil: f64,
    /// They were on a CPU; `None` where that was not looked at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_cpu: Option<f64>,
    /// They waited for the GIL.
    #[serde(rename = "gil_requested")]
    pub waits_for_gil: f64,
    /// They had an exception.
    pub has_exception: f64,
    /// They collected garbage.
    pub in_gc: f64,
}

/// A part of the samples that count.
///
/// Serialized, [`Share::time_ns`] is `wall_ns` ([of wall time only](ReportView::keep_wall_times)), which has no key where it is
/// absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Share {
    /// How many samples.
    pub count: u64,
    /// Of all that count, 0 to 100.
    pub percent: f64,
    /// Its value, of the profile's [value type](Summary::value_type).
    #[serde(serialize_with = "json::signed")]
    pub value: i128,
    /// How long the samples were; `None` where the profile does not say, or values are something else.
    #[serde(
        rename = "wall_ns",
        serialize_with = "json::optional_time",
        skip_serializing_if = "Option::is_none"
    )]
    pub time_ns: Option<u128>,
}

/// A run of equal samples at the end of a profile.
///
/// Serialized, labels are pairs, process and thread are `pid` and `tid`, and what is unknown has no key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RecentRun {
    /// How many samples.
    pub count: u64,
    /// How many samples are later than the last of the run: 0 is "now".
    pub age: u64,
    /// The frames that are not hidden, leaf first, at most as many as the query allows.
    #[serde(rename = "frames", serialize_with = "json::shared_list")]
    pub frames_leaf_first: Vec<Arc<FrameName>>,
    /// How many frames there are without that limit.
    pub depth: usize,
    /// The labels, in order.
    #[serde(serialize_with = "json::labels")]
    pub labels: Vec<(Vec<u8>, LabelText)>,
    /// The process, if known.
    #[serde(rename = "pid", serialize_with = "json::optional_lane", skip_serializing_if = "Option::is_none")]
    pub process: Option<i64>,
    /// The thread, if known.
    #[serde(rename = "tid", serialize_with = "json::optional_lane", skip_serializing_if = "Option::is_none")]
    pub thread: Option<u64>,
    /// When, on the profile's clock, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_ns: Option<i64>,
}

/// The value of a label: serialized, a text, a number, or an object of `number` and `unit`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(untagged)]
pub enum LabelText {
    /// A text.
    Text(#[serde(serialize_with = "json::text")] Vec<u8>),
    /// A number, with its unit where one is known.
    #[serde(serialize_with = "json::quantity")]
    Number(i64, Option<Vec<u8>>),
}

/// Samples by something else than frames, the largest count first: serialized, a table of either.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Breakdown {
    /// By what a whole sample has: a label, a process, a thread.
    Samples {
        /// The rows, at most as many as the query allows.
        rows: Vec<SampleGroup>,
        /// How many rows there are without that limit.
        distinct: usize,
    },
    /// By what each of its frames has: a file, a class.
    Frames {
        /// The rows, by self time and then by total time, at most as many as the query allows.
        rows: Vec<FrameGroup>,
        /// How many rows there are without that limit.
        distinct: usize,
    },
}

/// The samples with one value: serialized, the keys of value and share.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SampleGroup {
    /// The value.
    #[serde(flatten)]
    pub value: GroupValue,
    /// Its share.
    #[serde(flatten)]
    pub share: Share,
}

/// What a group of samples has in common: serialized, its keys beside those of the group's share, of which
/// [`GroupValue::Absent`] has none.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub enum GroupValue {
    /// The value of a label.
    #[serde(rename = "label")]
    Label(LabelText),
    /// A process.
    #[serde(rename = "pid")]
    Process(#[serde(serialize_with = "json::lane")] i64),
    /// An interpreter.
    #[serde(rename = "interpreter")]
    Interpreter(u64),
    /// A thread.
    #[serde(untagged)]
    Thread {
        /// Its process, if known.
        #[serde(
            rename = "pid",
            serialize_with = "json::optional_lane",
            skip_serializing_if = "Option::is_none"
        )]
        process: Option<i64>,
        /// The thread.
        #[serde(rename = "tid", serialize_with = "json::lane")]
        thread: u64,
        /// Its name, if known.
        #[serde(serialize_with = "json::optional_text", skip_serializing_if = "Option::is_none")]
        name: Option<Vec<u8>>,
    },
    /// They have no such label, or their process or thread is unknown.
    #[serde(untagged)]
    Absent,
}

impl GroupValue {
    /// Whether both are the same; a thread is, by whatever name it goes now.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        let thread = |value: &Self| match *value {
            Self::Thread { process, thread, .. } => Some((process, thread)),
            _ => None,
        };
        thread(self).map_or(self == other, |here| Some(here) == thread(other))
    }
}

/// The samples in frames of one file or class.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FrameGroup {
    /// The file or class; `None` for frames that have none.
    #[serde(serialize_with = "json::optional_text", skip_serializing_if = "Option::is_none")]
    pub name: Option<Vec<u8>>,
    /// Samples whose leaf it is.
    #[serde(rename = "self")]
    pub self_time: Share,
    /// Samples in which it occurs.
    #[serde(rename = "total")]
    pub total_time: Share,
}
