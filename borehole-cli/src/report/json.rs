//! Views as one JSON object, on one line.
//!
//! A key whose value is unknown is absent. Names that are not UTF-8 have U+FFFD in the place of what is
//! not.

use std::io::{self, Write};

use borehole_analysis::tokio::TokioView;
use borehole_analysis::{
    Breakdown, FrameGroup, FrameName, GroupValue, LabelText, Paths, RecentRun, ReportView, Row, SampleGroup,
    Share, StateRow, StateTable, Summary, Table, ThreadStates,
};
use borehole_model::{LaneId, Mode, ValueType};
use serde::Serialize;

use super::args::ReportArgs;
use super::render::name_of;
use super::tokio_json;

/// Raised when a key changes its meaning or goes away.
const SCHEMA_VERSION: u32 = 1;

#[derive(Serialize)]
struct Document<'a> {
    schema_version: u32,
    summary: SummaryObject,
    #[serde(skip_serializing_if = "Option::is_none")]
    tokio: Option<serde_json::Value>,
    /// Those of inputs that are kept apart, each with its name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tokio_by_input: Vec<serde_json::Value>,
    #[serde(rename = "self", skip_serializing_if = "Option::is_none")]
    self_time: Option<TableObject<'a>>,
    #[serde(rename = "total", skip_serializing_if = "Option::is_none")]
    total_time: Option<TableObject<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    states: Option<StatesObject>,
    #[serde(skip_serializing_if = "Option::is_none")]
    callers: Option<TableObject<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    callees: Option<TableObject<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last: Option<Vec<RunObject>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<BreakdownObject>,
}

#[derive(Serialize)]
struct SummaryObject {
    samples: u64,
    matched: u64,
    value_type: String,
    unit: String,
    value: i64,
    /// What could be added up instead, as `kind/unit`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    other_value_types: Vec<String>,
    /// Samples that cannot be added to the others.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    hidden: Vec<HiddenObject>,
    empty: u64,
    samples_at_depth_limit: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    wall_ns: Option<u64>,
    periods: Vec<PeriodObject>,
    samples_without_period: u64,
    segments: u64,
    stacks: usize,
    frames: usize,
    processes: usize,
    threads: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    span_ns: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    samples_per_second: Option<f64>,
    warnings: u64,
    lost_bytes: u64,
}

#[derive(Serialize)]
struct HiddenObject {
    value_type: String,
    unit: String,
    samples: u64,
}

#[derive(Serialize)]
struct PeriodObject {
    period_ns: u64,
    samples: u64,
}

#[derive(Serialize)]
struct TableObject<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pattern: Option<&'a str>,
    distinct: usize,
    rows: Vec<RowObject>,
}

#[derive(Serialize)]
struct RowObject {
    #[serde(flatten)]
    frame: FrameObject,
    #[serde(flatten)]
    share: ShareObject,
}

#[derive(Serialize)]
struct StatesObject {
    distinct: usize,
    rows: Vec<StateObject>,
}

/// In how many of the samples in which a frame was on the stack threads were in a state, in per cent.
#[derive(Serialize)]
struct StateObject {
    #[serde(flatten)]
    frame: FrameObject,
    count: u64,
    has_gil: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    on_cpu: Option<f64>,
    gil_requested: f64,
    has_exception: f64,
    in_gc: f64,
}

#[derive(Serialize)]
struct FrameObject {
    frame: String,
    function: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    module: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    opcode: Option<String>,
}

#[derive(Serialize)]
struct ShareObject {
    count: u64,
    percent: f64,
    value: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    wall_ns: Option<u64>,
}

#[derive(Serialize)]
struct RunObject {
    count: u64,
    age: u64,
    depth: usize,
    frames: Vec<FrameObject>,
    labels: Vec<(String, Value)>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pid: Option<Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tid: Option<Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    time_ns: Option<i64>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Value {
    Text(String),
    Number(i64),
    Quantity { number: i64, unit: String },
}

/// A process or a thread: a number, or a text such as `100.1` of one that the operating system does not number so.
#[derive(Serialize)]
#[serde(untagged)]
pub(crate) enum Number {
    Thread(u64),
    Process(i64),
    Text(String),
}

impl Number {
    pub(crate) fn of(thread: u64) -> Self {
        match LaneId::of(thread) {
            LaneId::System(number) => Self::Thread(number),
            other => Self::Text(other.to_string()),
        }
    }

    pub(crate) fn of_process(process: i64) -> Self {
        match LaneId::of_process(process) {
            LaneId::System(_) => Self::Process(process),
            other => Self::Text(other.to_string()),
        }
    }
}

#[derive(Serialize)]
struct BreakdownObject {
    by: String,
    distinct: usize,
    rows: Vec<GroupObject>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum GroupObject {
    Samples {
        #[serde(flatten)]
        value: ValueObject,
        #[serde(flatten)]
        share: ShareObject,
    },
    Frames {
        #[serde(skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        #[serde(rename = "self")]
        self_time: ShareObject,
        #[serde(rename = "total")]
        total_time: ShareObject,
    },
}

#[derive(Default, Serialize)]
struct ValueObject {
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pid: Option<Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tid: Option<Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    interpreter: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
}

/// Writes `view` as JSON, with what there is about a Tokio program.
///
/// # Errors
/// When `out` cannot be written.
pub(crate) fn write(
    view: &ReportView,
    tokio: &[TokioView],
    args: &ReportArgs,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mode = view.summary.mode;
    let asked = |table: &Table| args.wants_top().then(|| self::table(table, mode, None));
    let document = Document {
        schema_version: SCHEMA_VERSION,
        summary: summary(&view.summary),
        tokio: tokio.iter().find(|view| view.source.is_none()).map(tokio_json::object),
        tokio_by_input: tokio.iter().filter_map(tokio_json::object_of_input).collect(),
        self_time: asked(&view.self_time),
        total_time: asked(&view.total_time),
        states: view.states.as_ref().filter(|_| args.wants_top()).map(states),
        callers: view.callers.as_ref().map(|table| self::table(table, mode, args.tables.callers.as_deref())),
        callees: view.callees.as_ref().map(|table| self::table(table, mode, args.tables.callees.as_deref())),
        last: view.last.as_ref().map(|runs| runs.iter().map(run).collect()),
        by: args
            .tables
            .by
            .as_ref()
            .zip(view.breakdown.as_ref())
            .map(|(by, rows)| breakdown(name_of(by), rows, mode)),
    };
    serde_json::to_writer(&mut *out, &document)?;
    writeln!(out)
}

fn summary(summary: &Summary) -> SummaryObject {
    let periods = summary.periods.iter();
    SummaryObject {
        samples: summary.samples,
        matched: summary.matched,
        value_type: summary.value_type.kind.clone(),
        unit: summary.value_type.unit.clone(),
        value: signed(summary.value),
        other_value_types: summary.other_value_types.iter().map(ToString::to_string).collect(),
        hidden: summary.hidden.iter().map(hidden).collect(),
        empty: summary.empty,
        samples_at_depth_limit: summary.at_depth_limit,
        wall_ns: summary.time_ns.filter(|_| summary.mode == Mode::Wall).map(whole),
        periods: periods.map(|row| PeriodObject { period_ns: row.period_ns, samples: row.samples }).collect(),
        samples_without_period: summary.without_period,
        segments: summary.segments,
        stacks: summary.stacks,
        frames: summary.frames,
        processes: summary.processes,
        threads: summary.threads,
        span_ns: summary.span_ns,
        samples_per_second: summary.samples_per_second(),
        warnings: summary.warnings,
        lost_bytes: summary.lost_bytes,
    }
}

/// JSON numbers end where most readers' integers do: at 584 years of nanoseconds.
fn whole(wall_ns: u128) -> u64 {
    u64::try_from(wall_ns).unwrap_or(u64::MAX)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn signed(value: i128) -> i64 {
    i64::try_from(value).unwrap_or(if value < 0 { i64::MIN } else { i64::MAX })
}

fn hidden((kind, samples): &(ValueType, u64)) -> HiddenObject {
    HiddenObject { value_type: kind.kind.clone(), unit: kind.unit.clone(), samples: *samples }
}

fn share(share: Share, mode: Mode) -> ShareObject {
    let wall_ns = share.time_ns.filter(|_| mode == Mode::Wall).map(whole);
    ShareObject { count: share.count, percent: share.percent, value: signed(share.value), wall_ns }
}

fn table<'a>(table: &Table, mode: Mode, pattern: Option<&'a str>) -> TableObject<'a> {
    let row = |row: &Row| RowObject { frame: frame(&row.frame), share: share(row.share, mode) };
    TableObject { pattern, distinct: table.distinct, rows: table.rows.iter().map(row).collect() }
}

fn states(table: &StateTable) -> StatesObject {
    let row = |row: &StateRow| {
        let ThreadStates { has_gil, on_cpu, waits_for_gil, has_exception, in_gc } = row.states;
        let (frame, count) = (frame(&row.frame), row.count);
        StateObject { frame, count, has_gil, on_cpu, gil_requested: waits_for_gil, has_exception, in_gc }
    };
    StatesObject { distinct: table.distinct, rows: table.rows.iter().map(row).collect() }
}

fn frame(name: &FrameName) -> FrameObject {
    let optional = |bytes: &Option<Vec<u8>>| bytes.as_deref().map(text);
    FrameObject {
        frame: text(&name.text(Paths::Full)),
        function: text(&name.function),
        file: optional(&name.file),
        line: name.line,
        module: optional(&name.module),
        opcode: optional(&name.opcode),
    }
}

fn run(run: &RecentRun) -> RunObject {
    RunObject {
        count: run.count,
        age: run.age,
        depth: run.depth,
        frames: run.frames_leaf_first.iter().map(|name| frame(name)).collect(),
        labels: run.labels.iter().map(|(key, value)| (text(key), label(value))).collect(),
        pid: run.process.map(Number::of_process),
        tid: run.thread.map(Number::of),
        time_ns: run.time_ns,
    }
}

fn label(value: &LabelText) -> Value {
    match value {
        LabelText::Text(bytes) => Value::Text(text(bytes)),
        LabelText::Number(number, None) => Value::Number(*number),
        LabelText::Number(number, Some(unit)) => Value::Quantity { number: *number, unit: text(unit) },
    }
}

fn breakdown(by: String, breakdown: &Breakdown, mode: Mode) -> BreakdownObject {
    match breakdown {
        Breakdown::Samples { rows, distinct } => BreakdownObject {
            by,
            distinct: *distinct,
            rows: rows.iter().map(|row| sample_group(row, mode)).collect(),
        },
        Breakdown::Frames { rows, distinct } => BreakdownObject {
            by,
            distinct: *distinct,
            rows: rows.iter().map(|row| frame_group(row, mode)).collect(),
        },
    }
}

fn sample_group(row: &SampleGroup, mode: Mode) -> GroupObject {
    GroupObject::Samples { value: group_value(&row.value), share: share(row.share, mode) }
}

fn frame_group(row: &FrameGroup, mode: Mode) -> GroupObject {
    GroupObject::Frames {
        name: row.name.as_deref().map(text),
        self_time: share(row.self_time, mode),
        total_time: share(row.total_time, mode),
    }
}

fn group_value(value: &GroupValue) -> ValueObject {
    match value {
        GroupValue::Absent => ValueObject::default(),
        GroupValue::Label(value) => ValueObject { value: Some(label(value)), ..ValueObject::default() },
        GroupValue::Process(process) => {
            ValueObject { pid: Some(Number::of_process(*process)), ..ValueObject::default() }
        }
        GroupValue::Interpreter(interpreter) => {
            ValueObject { interpreter: Some(*interpreter), ..ValueObject::default() }
        }
        GroupValue::Thread { process, thread, name } => ValueObject {
            pid: process.map(Number::of_process),
            tid: Some(Number::of(*thread)),
            name: name.as_deref().map(text),
            ..ValueObject::default()
        },
    }
}
