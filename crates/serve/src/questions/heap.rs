//! Questions about heaps.

use borehole::heap::views::{Heap, Needle, classes, find};
use borehole_heap::NodeId;
use borehole_heap::findings::report;
use borehole_text::{bytes, grouped, percent, percent_of};

use super::ask::Ask;
pub(super) use super::profile::name;
use super::table::{ViewCell, ViewTable};
use crate::limits::AnswerLimits;
use crate::refusal::Refusal;

fn limit(ask: &Ask) -> usize {
    ask.limit.unwrap_or(AnswerLimits::ROWS).clamp(1, AnswerLimits::MOST_ROWS)
}

pub(super) fn number(count: u64) -> ViewCell {
    i64::try_from(count).unwrap_or(i64::MAX).into()
}

pub(super) fn table(heap: &Heap<'_>, title: &str, columns: &[&str]) -> ViewTable {
    let total = heap.retention().total();
    ViewTable {
        title: format!("{title}, of {} reachable memory", bytes(total)),
        unit: "bytes".to_owned(),
        total: i64::try_from(total).unwrap_or(i64::MAX),
        columns: columns.iter().map(|&column| column.to_owned()).collect(),
        ..ViewTable::default()
    }
}

/// The classes, by what they retain.
pub(super) fn class_table(heap: &Heap<'_>, ask: &Ask) -> ViewTable {
    let mut found = classes(heap);
    found.sort_by(|one, other| {
        other.retained_bytes.cmp(&one.retained_bytes).then_with(|| one.name.cmp(&other.name))
    });
    let columns = ["retained bytes", "retained %", "shallow bytes", "objects", "largest", "class"];
    let mut table = table(heap, "Classes", &columns);
    let total = heap.retention().total();
    let shown = &found[..found.len().min(limit(ask))];
    table.rows = shown
        .iter()
        .map(|class| {
            vec![
                number(class.retained_bytes),
                ViewCell::Percent(percent_of(class.retained_bytes, total)),
                number(class.shallow_bytes),
                number(class.count),
                format!("n{}", class.largest.0).into(),
                name(&class.name).into(),
            ]
        })
        .collect();
    table.all_rows = found.len();
    let objects: u64 = shown.iter().map(|class| class.count).sum();
    let all: u64 = found.iter().map(|class| class.count).sum();
    table.coverage = format!(
        "Shown {} of all objects, the rest in {} classes.",
        percent(percent_of(objects, all)),
        grouped((found.len() - shown.len()) as u64)
    );
    table.next.push("heap_ask with a node shows what holds it and what it holds".to_owned());
    table
}

/// The findings about the heap, the most important first.
pub(super) fn findings(heap: &Heap<'_>, ask: &Ask) -> ViewTable {
    let report = report(heap);
    let columns = ["severity", "impact bytes", "finding", "likely meaning", "node", "path"];
    let mut table = table(heap, "Findings", &columns);
    table.rows = report
        .findings
        .iter()
        .take(limit(ask))
        .map(|finding| {
            let place = finding.place.as_ref();
            vec![
                finding.severity.name().into(),
                number(finding.impact_bytes),
                name(finding.summary.as_bytes()).into(),
                name(finding.hypothesis.as_bytes()).into(),
                place.map_or_else(String::new, |place| format!("n{}", place.node.0)).into(),
                place.map_or_else(String::new, |place| name(place.path.as_bytes())).into(),
            ]
        })
        .collect();
    table.all_rows = report.findings.len();
    table.coverage = format!("Shown {} of {} findings.", table.rows.len(), report.findings.len());
    table.notes.extend(report.contradiction);
    let checks = report.findings.iter().flat_map(|finding| &finding.next_checks);
    table.next.extend(checks.take(AnswerLimits::NEXT).map(|check| name(check.as_bytes())));
    table
}

/// A node with its way from a root, and what it alone holds; or the nodes with a text or of a class; or the largest holders.
pub(super) fn node(heap: &Heap<'_>, ask: &Ask) -> Result<ViewTable, Refusal> {
    let needle = match (&ask.class, &ask.text) {
        (Some(class), _) => Some(Needle::Class(class.clone().into_bytes())),
        (None, Some(text)) => Some(Needle::Content(text.clone().into_bytes())),
        (None, None) => ask.address.as_deref().map(address).transpose()?.map(Needle::Address),
    };
    if let Some(needle) = needle {
        let (found, count) = find(heap, &needle, limit(ask));
        let mut table = table(heap, "Found nodes", &COLUMNS);
        table.rows = found.iter().map(|&node| row(heap, "found", node, b"")).collect();
        table.all_rows = usize::try_from(count).unwrap_or(usize::MAX);
        table.coverage = format!("Shown {} of {} nodes.", found.len(), grouped(count));
        return Ok(table);
    }
    let asked = ask.node.as_deref().map(|asked| named(heap, asked)).transpose()?;
    let mut table = table(heap, "What keeps memory alive", &COLUMNS);
    if let Some(node) = asked {
        table.title = format!("Node n{}, {}", node.0, name(&heap.path(node)));
        table.rows.extend(heap.way(node).iter().map(|step| row(heap, "way", step.node, &step.link)));
    }
    let (held, count) = heap.held(asked, limit(ask));
    table.rows.extend(held.iter().map(|held| row(heap, "holds", held.node, b"")));
    table.all_rows = table.rows.len() + count.saturating_sub(held.len());
    table.coverage = format!("Shown {} of {} values that it alone holds.", held.len(), grouped(count as u64));
    Ok(table)
}

/// An address as text.
pub(super) fn address(text: &str) -> Result<u64, Refusal> {
    let number = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    };
    number.ok_or_else(|| {
        let found = name(text.as_bytes());
        Refusal::invalid(format!("address: expected a number such as 0x7f1234567890, found {found}"))
    })
}

/// The node of a handle.
fn named(heap: &Heap<'_>, handle: &str) -> Result<NodeId, Refusal> {
    let number: u64 = handle.strip_prefix('n').unwrap_or(handle).parse().map_err(|_| {
        let found = name(handle.as_bytes());
        Refusal::invalid(format!("node: expected a handle such as n7, found {found}"))
    })?;
    let node = u32::try_from(number).ok().map(NodeId).filter(|&node| heap.node(node).is_some());
    node.ok_or_else(|| {
        Refusal::missing(format!("no node n{number}")).with_help("heap_classes and heap_findings name nodes")
    })
}

const COLUMNS: [&str; 6] = ["relation", "node", "retained bytes", "shallow bytes", "link", "value"];

fn row(heap: &Heap<'_>, relation: &str, node: NodeId, link: &[u8]) -> Vec<ViewCell> {
    let brief = heap.brief(node);
    vec![
        relation.into(),
        format!("n{}", node.0).into(),
        number(brief.retained_bytes),
        number(brief.shallow_bytes),
        name(link).into(),
        name(&brief.text).into(),
    ]
}
