//! What a trace tells of a Tokio program, as JSON: the key `tokio` of the document, and for inputs that are kept apart
//! the elements of `tokio_by_input`.
//!
//! Times are nanoseconds on the clock of the trace. A key whose value is unknown is absent or null.

use borehole_analysis::tokio::{
    AllocationView, Delay, EventRow, FieldRow, Finding, Rows, Seal, Spread, TaskView, TokioView, WorkerRow,
};
use serde_json::{Value, json};

/// What is told of an input, with its name, if it is kept apart.
pub(super) fn object_of_input(view: &TokioView) -> Option<Value> {
    let mut object = object(view);
    object["input"] = Value::from(view.source.as_deref()?);
    Some(object)
}

pub(super) fn object(view: &TokioView) -> Value {
    let seal = match view.seal {
        Seal::Absent => "absent",
        Seal::Complete => "complete",
        Seal::Incomplete => "incomplete",
    };
    json!({
        "start_ns": view.start_ns,
        "end_ns": view.end_ns,
        "unix_offset_ns": view.unix_offset_ns.and_then(|offset| i64::try_from(offset).ok()),
        "events": view.events,
        "seal": seal,
        "lost_events": view.lost_events,
        "findings": view.findings.iter().map(finding).collect::<Vec<_>>(),
        "workers": view.workers.iter().map(worker).collect::<Vec<_>>(),
        "polls": polls(view),
        "tasks": tasks(&view.tasks),
        "delays": delays(view),
        "wakes": {
            "count": view.wakes.count,
            "from_outside": view.wakes.from_outside,
            "by_itself": view.wakes.by_itself,
            "off_worker": view.wakes.off_worker,
        },
        "blocking": blocking(view),
        "queue": view.queue.map(|queue| json!({
            "samples": queue.samples,
            "mean": queue.mean,
            "max": queue.max,
            "max_ns": queue.max_ns,
            "over_100": queue.high,
        })),
        "spans": counted(view.span_count, rows(&view.spans, |row| json!({
            "name": row.name,
            "durations": spread(&row.durations),
            "busy_ns": row.busy_ns,
            "outliers": row.outliers,
            "longest_start_ns": row.longest_start_ns,
            "unmatched": row.unmatched,
        }))),
        "allocations": view.allocations.as_ref().map(allocations),
        "other_events": rows(&view.other_events, event),
    })
}

fn rows<T>(rows: &Rows<T>, object: impl Fn(&T) -> Value) -> Value {
    json!({"distinct": rows.distinct, "rows": rows.rows.iter().map(object).collect::<Vec<_>>()})
}

/// A table of what there is so often in all.
fn counted(count: u64, mut table: Value) -> Value {
    table["count"] = Value::from(count);
    table
}

fn spread(spread: &Spread) -> Value {
    json!({
        "count": spread.count,
        "sum_ns": spread.sum_ns,
        "min_ns": spread.min_ns,
        "mean_ns": spread.mean_ns,
        "p50_ns": spread.p50_ns,
        "p90_ns": spread.p90_ns,
        "p99_ns": spread.p99_ns,
        "max_ns": spread.max_ns,
    })
}

fn finding(finding: &Finding) -> Value {
    json!({
        "severity": finding.severity.name(),
        "check": finding.check,
        "evidence": finding.evidence,
        "time_ns": finding.time_ns,
        "worker": finding.worker,
        "task": finding.task,
    })
}

fn worker(row: &WorkerRow) -> Value {
    json!({
        "worker": row.worker,
        "polls": row.polls,
        "busy_ns": row.busy_ns,
        "active_ns": row.active_ns,
        "cpu_ns": row.cpu_ns,
        "parked_ns": row.parked_ns,
        "parks": row.parks,
        "longest_poll_ns": row.longest_poll_ns,
        "longest_queue": row.longest_queue,
        "longest_wait_ns": row.longest_wait_ns,
    })
}

fn polls(view: &TokioView) -> Value {
    let polls = &view.polls;
    json!({
        "durations": spread(&polls.durations),
        "unended": polls.unended,
        "places": rows(&polls.places, |row| json!({
            "spawned_at": row.spawned_at,
            "durations": spread(&row.durations),
        })),
        "longest": rows(&polls.longest, |poll| json!({
            "duration_ns": poll.duration_ns,
            "start_ns": poll.start_ns,
            "worker": poll.worker,
            "task": poll.task,
            "spawned_at": poll.spawned_at,
            "is_open": poll.is_open,
        })),
    })
}

fn tasks(tasks: &TaskView) -> Value {
    json!({
        "spawned": tasks.spawned,
        "ended": tasks.ended,
        "alive": tasks.alive,
        "older": tasks.older,
        "older_alive": tasks.older_alive,
        "blocking": tasks.blocking,
        "lifetimes": spread(&tasks.lifetimes),
        "places": rows(&tasks.places, |row| json!({
            "spawned_at": row.spawned_at,
            "spawned": row.spawned,
            "alive": row.alive,
        })),
        "counted": tasks.counted.map(|counts| json!({
            "samples": counts.samples,
            "first": counts.first,
            "last": counts.last,
            "peak": counts.peak,
            "peak_ns": counts.peak_ns,
        })),
    })
}

fn delays(view: &TokioView) -> Value {
    let delays = &view.delays;
    json!({
        "durations": spread(&delays.durations),
        "over_5_ms": delays.high,
        "is_measured": delays.is_measured,
        "worst": rows(&delays.worst, delay),
    })
}

fn delay(delay: &Delay) -> Value {
    json!({
        "delay_ns": delay.delay_ns,
        "poll_ns": delay.poll_ns,
        "task": delay.task,
        "worker": delay.worker,
        "spawned_at": delay.spawned_at,
    })
}

fn blocking(view: &TokioView) -> Value {
    let blocking = &view.blocking;
    json!({
        "samples": blocking.samples,
        "in_polls": blocking.in_polls,
        "stacks": rows(&blocking.stacks, |row| json!({
            "count": row.count,
            "first_ns": row.first_ns,
            "leaf": row.leaf,
            "call": row.call,
            "callers": row.callers,
        })),
        "places": rows(&blocking.places, |row| json!({
            "spawned_at": row.spawned_at,
            "count": row.count,
        })),
    })
}

fn allocations(memory: &AllocationView) -> Value {
    json!({
        "allocations": memory.allocations,
        "bytes": memory.bytes,
        "freed": memory.freed,
        "outstanding": memory.outstanding,
        "outstanding_bytes": memory.outstanding_bytes,
        "estimated_outstanding_bytes": memory.estimated_outstanding_bytes,
        "dropped": memory.dropped,
        "sites": rows(&memory.sites, |row| json!({
            "count": row.count,
            "bytes": row.bytes,
            "first_ns": row.first_ns,
            "callers": row.callers,
        })),
    })
}

fn event(row: &EventRow) -> Value {
    json!({
        "name": row.name,
        "count": row.count,
        "per_second": row.per_second,
        "fields": row.fields.iter().map(field).collect::<Vec<_>>(),
    })
}

fn field(row: &FieldRow) -> Value {
    json!({
        "name": row.name,
        "unit": row.unit,
        "kind": row.kind,
        "count": row.count,
        "min": row.min,
        "mean": row.mean,
        "p50": row.p50,
        "p90": row.p90,
        "p99": row.p99,
        "max": row.max,
        "per_second": row.per_second,
    })
}
