//! The answer: plain data.

use std::sync::Arc;

use borehole_model::{Mode, ValueType};
use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};

use crate::json;
use crate::view::Summary;

/// Two sides beside each other.
#[derive(Clone, Debug, Default)]
pub struct DiffView {
    /// What came first.
    pub before: DiffSide,
    /// What came then.
    pub after: DiffSide,
    /// What values are.
    pub measure: Measure,
    /// What noise is judged by.
    pub basis: Basis,
    /// How sure a marked difference is.
    pub confidence: f64,
    /// All that is compared: the whole, or the stacks in focus.
    pub whole: Change,
    /// Functions: those that changed beyond noise first, then by how much their own value changed, then their total.
    pub functions: Vec<DiffRow>,
    /// Call paths that changed, in the same order, at most as many as were asked for.
    pub paths: Vec<DiffPath>,
    /// How many call paths there are.
    pub distinct_paths: usize,
    /// Every call path that is not too small, callers before what they call.
    pub tree: Vec<DiffNode>,
    /// How many call paths are not in the tree because they are too small.
    pub pruned: usize,
    /// Functions that one side lacks and the other has in other files; only where files tell functions apart.
    pub moved: usize,
}

/// A side.
///
/// Serialized, its value type is the keys `value_type` and `unit`, of the summary there are the numbers of samples, bytes and
/// nanoseconds of wall time, and what is absent has no key.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct DiffSide {
    /// The side as a whole.
    #[serde(flatten, serialize_with = "numbers")]
    pub summary: Summary,
    /// How many inputs it has.
    pub inputs: u64,
    /// What its samples are divided by: samples, seconds, inputs, values of the label.
    pub divisor: f64,
    /// In how many stretches its samples were looked at; 1 where nothing is known of their order.
    #[serde(rename = "stretches")]
    pub blocks: usize,
    /// Whether its samples come in the order in which they were taken.
    #[serde(rename = "ordered")]
    pub is_ordered: bool,
    /// The value type that is compared, times in nanoseconds; `None` where samples are counted.
    #[serde(flatten, serialize_with = "json::optional_value_type")]
    pub value_type: Option<ValueType>,
    /// The sum of that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<u64>,
    /// The other value types that there are.
    #[serde(
        rename = "other_value_types",
        serialize_with = "json::value_type_names",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub others: Vec<ValueType>,
}

fn numbers<S: Serializer>(summary: &Summary, serializer: S) -> Result<S::Ok, S::Error> {
    let numbers = [
        ("samples", Some(summary.samples)),
        ("matched", Some(summary.matched)),
        ("empty", Some(summary.empty)),
        ("stacks", Some(summary.stacks as u64)),
        ("wall_ns", summary.time_ns.filter(|_| summary.mode == Mode::Wall).map(json::time)),
        ("span_ns", summary.span_ns),
        ("warnings", Some(summary.warnings)),
        ("lost_bytes", Some(summary.lost_bytes)),
    ];
    serializer.collect_map(numbers.into_iter().filter_map(|(key, number)| Some((key, number?))))
}

/// What values are: serialized, in lower case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Measure {
    /// Parts of all samples of the side, from 0 to 1.
    #[default]
    Share,
    /// Samples, or values that are no times, for each unit of the divisor.
    Samples,
    /// Seconds of sampled time for each unit of the divisor.
    Seconds,
}

/// What noise is judged by: serialized, what it is between.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Basis {
    /// What stretches of time of a side differ from each other.
    #[default]
    Stretches,
    /// What inputs of a side differ from each other.
    Inputs,
    /// Samples of a side at least keep no order: they are taken for independent.
    #[serde(rename = "samples")]
    Independent,
}

/// One value on both sides: serialized, [`Change::difference`] is `change`, and [`Change::is_marked`] is `beyond_noise`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Change {
    /// What came first.
    pub before: Amount,
    /// What came then.
    pub after: Amount,
    /// How far the difference may be off, either way, with the view's confidence.
    pub margin: f64,
    /// The chance of such a difference without a change, looked at alone.
    pub chance: f64,
    /// Whether the difference is more than noise, with all others in view.
    pub is_marked: bool,
}

impl Change {
    /// How much more it is: negative if it is less.
    #[must_use]
    pub fn difference(&self) -> f64 {
        self.after.value - self.before.value
    }
}

impl Serialize for Change {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { before, after, margin, chance, is_marked } = self;
        let mut object = serializer.serialize_map(None)?;
        object.serialize_entry("before", before)?;
        object.serialize_entry("after", after)?;
        object.serialize_entry("change", &self.difference())?;
        object.serialize_entry("margin", margin)?;
        object.serialize_entry("chance", chance)?;
        object.serialize_entry("beyond_noise", is_marked)?;
        object.end()
    }
}

/// What one side says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Amount {
    /// Samples, or the sum of their values.
    pub samples: u64,
    /// As the view measures.
    pub value: f64,
}

/// On which sides something was sampled: serialized, in lower case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Presence {
    /// On both.
    #[default]
    Both,
    /// Before only.
    Vanished,
    /// After only.
    Appeared,
}

impl Presence {
    /// Where there were samples.
    #[must_use]
    pub const fn of(total: &Change) -> Self {
        match (total.before.samples, total.after.samples) {
            (_, 0) => Self::Vanished,
            (0, _) => Self::Appeared,
            _ => Self::Both,
        }
    }
}

/// A function as a diff tells functions apart: serialized in UTF-8, without keys of what is absent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct DiffFrame {
    /// Its whole name.
    #[serde(serialize_with = "json::text")]
    pub function: Vec<u8>,
    /// Its source file, or the library of machine code, where that tells functions apart.
    #[serde(serialize_with = "json::optional_text", skip_serializing_if = "Option::is_none")]
    pub file: Option<Vec<u8>>,
    /// Its line, where that does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<i64>,
}

/// A function: serialized, with the keys of its frame, and [`Presence`] as `on`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DiffRow {
    /// The function.
    #[serde(flatten, serialize_with = "json::shared")]
    pub frame: Arc<DiffFrame>,
    /// When it was executing.
    #[serde(rename = "self")]
    pub own: Change,
    /// When it was on the stack.
    #[serde(flatten, serialize_with = "total_and_presence")]
    pub total: Change,
}

/// A call path: serialized, with [`Presence`] as `on`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DiffPath {
    /// Its functions from the root.
    #[serde(rename = "frames_root_first", serialize_with = "json::shared_list")]
    pub frames: Vec<Arc<DiffFrame>>,
    /// When its last function was executing.
    #[serde(rename = "self")]
    pub own: Change,
    /// When the path was on the stack.
    #[serde(flatten, serialize_with = "total_and_presence")]
    pub total: Change,
}

fn total_and_presence<S: Serializer>(total: &Change, serializer: S) -> Result<S::Ok, S::Error> {
    let mut keys = serializer.serialize_map(Some(2))?;
    keys.serialize_entry("total", total)?;
    keys.serialize_entry("on", &Presence::of(total))?;
    keys.end()
}

/// A call path of the tree.
#[derive(Clone, Debug, PartialEq)]
pub struct DiffNode {
    /// The place of its caller in the tree; `None` at a root.
    pub caller: Option<usize>,
    /// Its last function.
    pub frame: Arc<DiffFrame>,
    /// When that was executing; what is too small for the tree counts as its caller's total only.
    pub own: [f64; 2],
    /// When the path was on the stack, before and after.
    pub total: [f64; 2],
    /// Whether the total changed beyond noise.
    pub is_marked: bool,
}
