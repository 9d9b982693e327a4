//! The result of a comparison, as plain data.

use std::sync::Arc;

use borehole_model::{Mode, ValueType};
use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};

use crate::json;
use crate::view::ProfileSummary;

/// A comparison of two sides.
///
/// Serialized, it has the keys `before`, `after`, `unit`, `noise`, `whole`, `functions` and `paths`, each of the last two with its
/// number of `distinct` rows. The tree, which pages draw, has no key.
#[derive(Clone, Debug, Default)]
pub struct DiffView {
    /// The first side.
    pub before: DiffSide,
    /// The second side.
    pub after: DiffSide,
    /// The measure of all values.
    pub measure: DiffMeasure,
    /// The basis on which noise is estimated.
    pub basis: NoiseBasis,
    /// The confidence of marked differences.
    pub confidence: f64,
    /// The sum of all that is compared: the whole, or the stacks in focus.
    pub whole: ValueChange,
    /// Functions: those that changed beyond noise first, then by the change of self, then by that of total.
    pub functions: Vec<DiffRow>,
    /// Call paths that changed, in that order, at most as many as were asked for.
    pub paths: Vec<DiffPath>,
    /// The number of call paths.
    pub distinct_paths: usize,
    /// All call paths that are large enough, callers before their callees.
    pub tree: Vec<DiffNode>,
    /// The number of call paths left out of the tree because they are too small.
    pub pruned: usize,
    /// The number of functions that one side lacks and the other has in other files. 0 unless files identify functions.
    pub moved: usize,
}

/// The keys of a [`DiffView`].
#[derive(Serialize)]
struct DiffKeys<'a> {
    before: &'a DiffSide,
    after: &'a DiffSide,
    unit: DiffMeasure,
    noise: NoiseKeys,
    whole: ValueChange,
    functions: FunctionKeys<'a>,
    paths: PathKeys<'a>,
}

/// How noise was told from change.
#[derive(Serialize)]
struct NoiseKeys {
    confidence: f64,
    between: NoiseBasis,
    test: &'static str,
    correction: &'static str,
}

#[derive(Serialize)]
struct FunctionKeys<'a> {
    distinct: usize,
    moved: usize,
    rows: &'a [DiffRow],
}

#[derive(Serialize)]
struct PathKeys<'a> {
    distinct: usize,
    rows: &'a [DiffPath],
}

impl DiffView {
    /// The view with the first `rows` functions and paths, as it is serialized.
    #[must_use]
    pub fn first_rows(&self, rows: usize) -> impl Serialize + '_ {
        let (functions, paths) = (self.functions.len(), self.paths.len());
        let (before, after) = (&self.before, &self.after);
        DiffKeys {
            before,
            after,
            unit: self.measure,
            noise: NoiseKeys {
                confidence: self.confidence,
                between: self.basis,
                test: "welch",
                correction: "benjamini-hochberg",
            },
            whole: self.whole,
            functions: FunctionKeys {
                distinct: functions,
                moved: self.moved,
                rows: &self.functions[..rows.min(functions)],
            },
            paths: PathKeys { distinct: self.distinct_paths, rows: &self.paths[..rows.min(paths)] },
        }
    }
}

impl Serialize for DiffView {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.first_rows(usize::MAX).serialize(serializer)
    }
}

/// One side of a comparison.
///
/// Serialized, its value type becomes the keys `value_type` and `unit`; the summary has only the numbers of samples and bytes
/// and the nanoseconds of wall time; absent values have no key.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct DiffSide {
    /// The side as a whole.
    #[serde(flatten, serialize_with = "numbers")]
    pub summary: ProfileSummary,
    /// The number of inputs.
    pub inputs: u64,
    /// The divisor of its samples: samples, seconds, inputs, or values of the label.
    pub divisor: f64,
    /// The number of stretches that its samples were divided into; 1 if their order is unknown.
    pub stretches: usize,
    /// Whether its samples are in the order in which they were taken.
    #[serde(rename = "ordered")]
    pub is_ordered: bool,
    /// The value type compared, times in nanoseconds; `None` if samples are counted.
    #[serde(flatten, serialize_with = "json::value_type")]
    pub value_type: Option<ValueType>,
    /// The sum of these values.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<u64>,
    /// The other available value types.
    #[serde(
        rename = "other_value_types",
        serialize_with = "json::value_type_names",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub others: Vec<ValueType>,
}

fn numbers<S: Serializer>(summary: &ProfileSummary, serializer: S) -> Result<S::Ok, S::Error> {
    let numbers = [
        ("samples", Some(summary.samples)),
        ("matched", Some(summary.matched)),
        ("empty", Some(summary.empty)),
        ("stacks", Some(summary.stacks as u64)),
        ("wall_ns", summary.time_ns.filter(|_| summary.mode == Mode::Wall).map(json::saturated)),
        ("span_ns", summary.span_ns),
        ("warnings", Some(summary.warnings)),
        ("lost_bytes", Some(summary.lost_bytes)),
    ];
    serializer.collect_map(numbers.into_iter().filter_map(|(key, number)| Some((key, number?))))
}

/// The measure of values. Serialized in lower case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum DiffMeasure {
    /// The share of all samples of the side, 0 to 1.
    #[default]
    Share,
    /// Samples, or values that are not times, per unit of the divisor.
    Samples,
    /// Seconds of sampled time per unit of the divisor.
    Seconds,
}

/// The basis on which noise is estimated. Serialized as `stretches`, `inputs` or `samples`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum NoiseBasis {
    /// The variation between stretches of a side.
    #[default]
    Stretches,
    /// The variation between inputs of a side.
    Inputs,
    /// At least one side has samples without an order. Samples are assumed to be independent.
    #[serde(rename = "samples")]
    Independent,
}

/// One value on both sides.
///
/// Serialized, [`ValueChange::difference`] is `change`, and [`ValueChange::is_marked`] is `significant`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ValueChange {
    /// The first side.
    pub before: Amount,
    /// The second side.
    pub after: Amount,
    /// The margin of error of the difference, either way, at the view's confidence.
    pub margin: f64,
    /// The chance of such a difference without a change, considered alone.
    pub chance: f64,
    /// Whether the difference is more than noise, considering all differences of the view.
    pub is_marked: bool,
}

impl ValueChange {
    /// The increase; negative for a decrease.
    #[must_use]
    pub fn difference(&self) -> f64 {
        self.after.value - self.before.value
    }
}

impl Serialize for ValueChange {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { before, after, margin, chance, is_marked } = self;
        let mut object = serializer.serialize_map(None)?;
        object.serialize_entry("before", before)?;
        object.serialize_entry("after", after)?;
        object.serialize_entry("change", &self.difference())?;
        object.serialize_entry("margin", margin)?;
        object.serialize_entry("chance", chance)?;
        object.serialize_entry("significant", is_marked)?;
        object.end()
    }
}

/// The amount on one side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Amount {
    /// Samples, or the sum of their values.
    pub samples: u64,
    /// The value in the view's measure.
    pub value: f64,
}

/// The sides that have samples. Serialized in lower case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Presence {
    /// Both sides.
    #[default]
    Both,
    /// The first side only.
    Vanished,
    /// The second side only.
    Appeared,
}

impl Presence {
    /// The sides on which a total has samples.
    #[must_use]
    pub const fn of(total: &ValueChange) -> Self {
        match (total.before.samples, total.after.samples) {
            (_, 0) => Self::Vanished,
            (0, _) => Self::Appeared,
            _ => Self::Both,
        }
    }
}

/// A function, as identified by a diff. Serialized in UTF-8; absent values have no key.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct DiffFrame {
    /// The whole name.
    #[serde(serialize_with = "json::text")]
    pub function: Vec<u8>,
    /// The source file, or the library of native code; `None` unless it identifies functions.
    #[serde(serialize_with = "json::text", skip_serializing_if = "Option::is_none")]
    pub file: Option<Vec<u8>>,
    /// The line; `None` unless it identifies functions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<i64>,
}

/// A function that is compared. Serialized, it has the keys of its frame, and [`Presence`] as `on`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DiffRow {
    /// The function.
    #[serde(flatten, serialize_with = "json::shared")]
    pub frame: Arc<DiffFrame>,
    /// Self: samples whose leaf it is.
    #[serde(rename = "self")]
    pub self_change: ValueChange,
    /// Total: samples that have it on the stack.
    #[serde(flatten, serialize_with = "total_and_presence")]
    pub total_change: ValueChange,
}

/// A call path that is compared. Serialized, it has [`Presence`] as `on`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DiffPath {
    /// The functions, root first.
    #[serde(rename = "frames_root_first", serialize_with = "json::shared_list")]
    pub frames: Vec<Arc<DiffFrame>>,
    /// Self: samples whose stack is this path.
    #[serde(rename = "self")]
    pub self_change: ValueChange,
    /// Total: samples whose stack begins with this path.
    #[serde(flatten, serialize_with = "total_and_presence")]
    pub total_change: ValueChange,
}

fn total_and_presence<S: Serializer>(total: &ValueChange, serializer: S) -> Result<S::Ok, S::Error> {
    let mut keys = serializer.serialize_map(Some(2))?;
    keys.serialize_entry("total", total)?;
    keys.serialize_entry("on", &Presence::of(total))?;
    keys.end()
}

/// A call path of the tree.
#[derive(Clone, Debug, PartialEq)]
pub struct DiffNode {
    /// The index of its caller in the tree; `None` at a root.
    pub caller: Option<usize>,
    /// The last function of the path.
    pub frame: Arc<DiffFrame>,
    /// Self, before and after. Calls too small for the tree count only in the total of their caller.
    pub self_values: [f64; 2],
    /// Total, before and after.
    pub total_values: [f64; 2],
    /// Whether the total changed beyond noise.
    pub is_marked: bool,
}
