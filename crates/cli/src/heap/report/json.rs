//! A report as JSON: `meta` and `findings` in reli's shape, and the tables.

use borehole::heap::MemoryTotal;
use borehole::heap::findings::{Fact, HeapFinding, HeapReport, LargeArray, LargeString, RootBlame};
use serde_json::{Map, Value, json};

pub(super) fn text(report: &HeapReport, pretty: bool) -> String {
    let overview = &report.overview;
    let object = json!({
        "schema_version": 1,
        "meta": {
            "node_count": report.counts.nodes,
            "edge_count": report.counts.edges,
            "php_version": overview.php_version,
            "heap_memory_analyzed_percentage": overview.analyzed_percentage,
            "captured_at": overview.captured_at,
            "contradiction": report.contradiction,
        },
        "findings": report.findings.iter().map(finding).collect::<Vec<_>>(),
        "types": report.types.iter().map(total).collect::<Vec<_>>(),
        "classes": report.classes.iter().map(total).collect::<Vec<_>>(),
        "arrays": report.arrays.iter().map(array).collect::<Vec<_>>(),
        "strings": report.strings.iter().map(string).collect::<Vec<_>>(),
        "roots": report.roots.iter().map(root).collect::<Vec<_>>(),
    });
    if pretty { format!("{object:#}\n") } else { format!("{object}\n") }
}

pub(in crate::heap) fn finding(finding: &HeapFinding) -> Value {
    let facts: Map<String, Value> =
        finding.facts.iter().map(|(name, found)| ((*name).to_owned(), fact(found))).collect();
    let mut object = json!({
        "kind": finding.kind.name(),
        "severity": finding.severity.name(),
        "confidence": finding.confidence.name(),
        "summary": finding.summary,
        "facts": facts,
        "hypothesis": finding.hypothesis,
        "next_checks": finding.next_checks,
        "impact_bytes": finding.impact_bytes,
    });
    if !finding.details.is_empty() {
        object["details"] = finding.details.clone().into();
    }
    if let Some(place) = &finding.place {
        object["node_id"] = place.node.0.into();
        object["path"] = place.path.as_str().into();
    }
    object
}

fn fact(fact: &Fact) -> Value {
    match fact {
        Fact::Number(number) => (*number).into(),
        Fact::Share(share) => (*share).into(),
        Fact::Text(text) => text.as_str().into(),
        Fact::List(list) => list.clone().into(),
        Fact::Rows(rows) => rows.iter().map(|row| row_object(row)).collect(),
    }
}

fn row_object(row: &[(&'static str, Fact)]) -> Value {
    row.iter().map(|(name, found)| ((*name).to_owned(), fact(found))).collect::<Map<_, _>>().into()
}

fn total(total: &MemoryTotal) -> Value {
    let name = String::from_utf8_lossy(&total.name);
    json!({"name": name, "count": total.count, "memory_usage": total.memory_usage})
}

fn array(array: &LargeArray) -> Value {
    json!({
        "node_id": array.place.node.0,
        "path": array.place.path,
        "count": array.count,
        "retained_bytes": array.retained_bytes,
        "table_bytes": array.table_bytes,
        "elements": array.elements,
    })
}

fn string(string: &LargeString) -> Value {
    json!({
        "node_id": string.place.node.0,
        "path": string.place.path,
        "count": string.count,
        "shallow_bytes": string.shallow_bytes,
        "preview": string.preview,
    })
}

fn root(root: &RootBlame) -> Value {
    json!({
        "root": root.name,
        "node_id": root.node.0,
        "exclusive_bytes": root.exclusive_bytes,
        "shared_bytes": root.shared_bytes,
        "percentage_of_heap": root.percentage_of_heap,
    })
}
