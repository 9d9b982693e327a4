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
    pid: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tid: Option<u64>,
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
    pid: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tid: Option<u64>,
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
    let asked = |table: &Table| args.wants_top().then(|| self::table(table, None));
    let document = Document {
        schema_version: SCHEMA_VERSION,
        summary: summary(&view.summary),
        tokio: tokio.iter().find(|view| view.source.is_none()).map(tokio_json::object),
        tokio_by_input: tokio.iter().filter_map(tokio_json::object_of_input).collect(),
        self_time: asked(&view.self_time),
        total_time: asked(&view.total_time),
        states: view.states.as_ref().filter(|_| args.wants_top()).map(states),
        callers: view.callers.as_ref().map(|table| self::table(table, args.tables.callers.as_deref())),
        callees: view.callees.as_ref().map(|table| self::table(table, args.tables.callees.as_deref())),
        last: view.last.as_ref().map(|runs| runs.iter().map(run).collect()),
        by: args
            .tables
            .by
            .as_ref()
            .zip(view.breakdown.as_ref())
            .map(|(by, rows)| breakdown(name_of(by), rows)),
    };
    serde_json::to_writer(&mut *out, &document)?;
    writeln!(out)
}

fn summary(summary: &Summary) -> SummaryObject {
    let periods = summary.periods.iter();
    SummaryObject {
        samples: summary.samples,
        matched: summary.matched,
        empty: summary.empty,
        samples_at_depth_limit: summary.at_depth_limit,
        wall_ns: summary.wall_ns.map(whole),
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

fn share(share: Share) -> ShareObject {
    ShareObject { count: share.count, percent: share.percent, wall_ns: share.wall_ns.map(whole) }
}

fn table<'a>(table: &Table, pattern: Option<&'a str>) -> TableObject<'a> {
    let row = |row: &Row| RowObject { frame: frame(&row.frame), share: share(row.share) };
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
        pid: run.process,
        tid: run.thread,
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

fn breakdown(by: String, breakdown: &Breakdown) -> BreakdownObject {
    match breakdown {
        Breakdown::Samples { rows, distinct } => {
            BreakdownObject { by, distinct: *distinct, rows: rows.iter().map(sample_group).collect() }
        }
        Breakdown::Frames { rows, distinct } => {
            BreakdownObject { by, distinct: *distinct, rows: rows.iter().map(frame_group).collect() }
        }
    }
}

fn sample_group(row: &SampleGroup) -> GroupObject {
    GroupObject::Samples { value: group_value(&row.value), share: share(row.share) }
}

fn frame_group(row: &FrameGroup) -> GroupObject {
    GroupObject::Frames {
        name: row.name.as_deref().map(text),
        self_time: share(row.self_time),
        total_time: share(row.total_time),
    }
}

fn group_value(value: &GroupValue) -> ValueObject {
    match value {
        GroupValue::Absent => ValueObject::default(),
        GroupValue::Label(value) => ValueObject { value: Some(label(value)), ..ValueObject::default() },
        GroupValue::Process(process) => ValueObject { pid: Some(*process), ..ValueObject::default() },
        GroupValue::Thread { process, thread, name } => ValueObject {
            pid: *process,
            tid: Some(*thread),
            name: name.as_deref().map(text),
            ..ValueObject::default()
        },
    }
}
