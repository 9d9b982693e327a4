//! A report as one JSON object, on one line: the views as they serialize, with the patterns of the query.

use std::io::{self, Write};

use borehole_analysis::tokio::TokioView;
use borehole_analysis::{Breakdown, ProfileSummary, RecentRun, ReportTable, ReportView, StateTable};
use borehole_model::LaneId;
use serde::Serialize;
use serde_json::Value;

use super::args::ReportArgs;
use super::render::name_of;

/// Raised when a key changes its meaning or goes away.
const SCHEMA_VERSION: u32 = 1;

#[derive(Serialize)]
struct ReportDocument<'a> {
    schema_version: u32,
    summary: SummaryObject<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tokio: Option<Value>,
    /// One for each input that is kept apart, with its name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tokio_by_input: Vec<Value>,
    #[serde(rename = "self", skip_serializing_if = "Option::is_none")]
    self_time: Option<&'a ReportTable>,
    #[serde(rename = "total", skip_serializing_if = "Option::is_none")]
    total_time: Option<&'a ReportTable>,
    #[serde(skip_serializing_if = "Option::is_none")]
    states: Option<&'a StateTable>,
    #[serde(skip_serializing_if = "Option::is_none")]
    callers: Option<Neighbours<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    callees: Option<Neighbours<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last: Option<&'a [RecentRun]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<GroupsObject<'a>>,
}

#[derive(Serialize)]
struct SummaryObject<'a> {
    #[serde(flatten)]
    summary: &'a ProfileSummary,
    #[serde(skip_serializing_if = "Option::is_none")]
    samples_per_second: Option<f64>,
}

#[derive(Serialize)]
struct Neighbours<'a> {
    /// The pattern that the functions match whose callers or callees these are.
    pattern: &'a str,
    #[serde(flatten)]
    table: &'a ReportTable,
}

#[derive(Serialize)]
struct GroupsObject<'a> {
    by: String,
    #[serde(flatten)]
    breakdown: &'a Breakdown,
}

/// Writes `view` as JSON, with the views of Tokio programs.
///
/// # Errors
/// When `out` cannot be written.
pub(crate) fn write(
    mut view: ReportView,
    tokio: &[TokioView],
    args: &ReportArgs,
    out: &mut dyn Write,
) -> io::Result<()> {
    view.keep_wall_times();
    let (apart, whole): (Vec<_>, Vec<_>) = tokio.iter().partition(|view| view.source.is_some());
    let summary = &view.summary;
    let asked = &args.tables;
    let document = ReportDocument {
        schema_version: SCHEMA_VERSION,
        summary: SummaryObject { summary, samples_per_second: summary.samples_per_second() },
        tokio: whole.first().map(|view| tokio_object(view)).transpose()?,
        tokio_by_input: apart.into_iter().map(tokio_object).collect::<serde_json::Result<_>>()?,
        self_time: args.wants_top().then_some(&view.self_table),
        total_time: args.wants_top().then_some(&view.total_table),
        states: view.states.as_ref().filter(|_| args.wants_top()),
        callers: neighbours(view.callers.as_ref(), asked.callers.as_deref()),
        callees: neighbours(view.callees.as_ref(), asked.callees.as_deref()),
        last: view.last.as_deref(),
        by: asked
            .by
            .as_ref()
            .zip(view.breakdown.as_ref())
            .map(|(by, breakdown)| GroupsObject { by: name_of(by), breakdown }),
    };
    serde_json::to_writer(&mut *out, &document)?;
    writeln!(out)
}

fn neighbours<'a>(table: Option<&'a ReportTable>, pattern: Option<&'a str>) -> Option<Neighbours<'a>> {
    let (table, pattern) = table.zip(pattern)?;
    Some(Neighbours { pattern, table })
}

/// The number of all spans stands beside their table.
fn tokio_object(view: &TokioView) -> serde_json::Result<Value> {
    let mut object = serde_json::to_value(view)?;
    object["spans"]["count"] = view.span_count.into();
    Ok(object)
}

/// A thread's id: a number, or text such as `100.1` if the operating system did not assign it.
pub(crate) fn thread_id(thread: u64) -> Value {
    match LaneId::of(thread) {
        LaneId::System(number) => number.into(),
        other => other.to_string().into(),
    }
}

/// A process's id, as [`thread_id`].
pub(crate) fn process_id(process: i64) -> Value {
    match LaneId::of_process(process) {
        LaneId::System(_) => process.into(),
        other => other.to_string().into(),
    }
}

#[cfg(test)]
mod tests {
    use borehole_analysis::tokio::{DelayView, QueueView, Seal};
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_unknown_of_a_tokio_program_is_null() {
        let object = tokio_object(&TokioView::default()).unwrap();
        for key in ["unix_offset_ns", "queue", "allocations"] {
            assert_eq!(object.get(key), Some(&Value::Null), "{key}");
        }
        assert_eq!((object.get("input"), &object["seal"]), (None, &json!("absent")));
        assert_eq!(object["spans"], json!({"count": 0, "distinct": 0, "rows": []}));
        assert_eq!(object["tasks"]["counted"], Value::Null);
    }

    #[test]
    fn what_is_known_of_a_tokio_program_has_its_key() {
        let view = TokioView {
            source: Some("a.bin".to_owned()),
            unix_offset_ns: Some(i128::MAX),
            seal: Seal::Incomplete,
            delays: DelayView { high: 3, ..DelayView::default() },
            queue: Some(QueueView { high: 4, ..QueueView::default() }),
            span_count: 5,
            ..TokioView::default()
        };
        let object = tokio_object(&view).unwrap();
        assert_eq!((&object["input"], &object["seal"]), (&json!("a.bin"), &json!("incomplete")));
        assert_eq!(object["unix_offset_ns"], Value::Null, "no number of 64 bits");
        assert_eq!((&object["delays"]["over_5_ms"], &object["queue"]["over_100"]), (&json!(3), &json!(4)));
        assert_eq!(object["spans"]["count"], 5);
    }
}
