//! A comparison as JSON.

use borehole::heap::compare::{HeapComparison, HolderChange, HolderList, MetricSeries, TotalChange};
use serde_json::{Value, json};

use super::{CompareArgs, growth_percent};
use crate::heap::report::json::finding;

/// Has the keys of reli's comparison, and in addition `heaps`, `holder_deltas`, and `values` for series.
pub(super) fn json(args: &CompareArgs, comparison: &HeapComparison) -> Value {
    let heap = |heap: &borehole::heap::compare::Compared| json!({"captured_at": heap.created, "node_count": heap.nodes, "bytes": heap.bytes});
    let list = |rows: &HolderList| -> Vec<Value> {
        args.shown(args.holders(rows)).0.into_iter().map(holder_json).collect()
    };
    let classes: Vec<&TotalChange> = args.changes(&comparison.classes).collect();
    let of_classes = |is: &dyn Fn(u64, u64) -> bool| -> Vec<Value> {
        let ends = |row: &TotalChange| {
            (row.counts.first().copied().unwrap_or(0), row.counts.last().copied().unwrap_or(0))
        };
        classes.iter().filter(|row| is(ends(row).0, ends(row).1)).map(|row| change_json(row)).collect()
    };
    json!({
        "schema_version": 1,
        "baseline": comparison.heaps.first().map(heap),
        "target": comparison.heaps.last().map(heap),
        "heaps": comparison.heaps.iter().map(heap).collect::<Vec<_>>(),
        "same_process": comparison.same_process,
        "summary_deltas": comparison.metrics.iter().filter_map(|series| metric_json(args, series)).collect::<Vec<_>>(),
        "type_deltas": args.changes(&comparison.types).map(change_json).collect::<Vec<_>>(),
        "class_deltas": {
            "changed": of_classes(&|before, now| before > 0 && now > 0),
            "added": of_classes(&|before, _| before == 0),
            "removed": of_classes(&|_, now| now == 0),
        },
        "findings_diff": {
            "new": comparison.findings.new.iter().map(finding).collect::<Vec<_>>(),
            "resolved": comparison.findings.resolved.iter().map(finding).collect::<Vec<_>>(),
            "changed": comparison.findings.changed.iter().map(|(was, now)| {
                json!({"baseline": finding(was), "target": finding(now)})
            }).collect::<Vec<_>>(),
        },
        "holder_deltas": {
            "changed": list(&comparison.holders),
            "added": list(&comparison.added),
            "removed": list(&comparison.removed),
            "changed_count": args.count(&comparison.holders),
            "added_count": args.count(&comparison.added),
            "removed_count": args.count(&comparison.removed),
        },
    })
}

fn metric_json(args: &CompareArgs, series: &MetricSeries) -> Option<Value> {
    let (before, now) = (series.values.first().copied().flatten(), series.values.last().copied().flatten());
    let delta = now.unwrap_or(0.0) - before.unwrap_or(0.0);
    let percent = before.filter(|before| *before != 0.0).map(|before| 100.0 * delta / before.abs());
    let is_shown = delta != 0.0 && percent.is_none_or(|percent| percent.abs() >= args.threshold);
    is_shown.then(|| {
        json!({"metric": series.name, "baseline": before, "target": now, "delta": delta,
               "delta_percent": percent, "values": series.values})
    })
}

fn change_json(row: &TotalChange) -> Value {
    json!({
        "name": String::from_utf8_lossy(&row.name),
        "counts": row.counts,
        "bytes": row.bytes,
        "delta": row.growth(),
        "delta_percent": growth_percent(row.growth(), row.bytes.first().copied().unwrap_or(0)),
        "steady": row.is_steady,
    })
}

fn holder_json(row: &HolderChange) -> Value {
    json!({
        "path": String::from_utf8_lossy(&row.path),
        "type": String::from_utf8_lossy(&row.node_type),
        "node_ids": row.nodes.iter().map(|node| node.map(|node| node.0)).collect::<Vec<_>>(),
        "alike": row.alike,
        "retained_bytes": row.retained,
        "counts": row.counts,
        "delta": row.growth,
        "steady": row.is_steady,
        "static": row.is_static,
    })
}
