//! A comparison as text.

use borehole::heap::compare::{Change, Comparison, FindingsDiff, HolderChange};
use borehole::heap::findings::Finding;

use super::{CompareArgs, percent_of};
use crate::cell::{Anchor, bytes, crop, printable};
use crate::heap::report::text::one;
use crate::values::cut;

/// As wide as a path may be shown.
const PATH_COLUMNS: usize = 80;

pub(super) fn text(args: &CompareArgs, comparison: &Comparison) -> String {
    let mut text = String::new();
    for (position, heap) in comparison.heaps.iter().enumerate() {
        let name = if position == 0 { "base" } else { "then" };
        let created = printable(heap.created.as_bytes());
        text += &format!("{name}  {:>10}  {} nodes  {created}\n", bytes(heap.bytes), heap.nodes);
    }
    if let (Some(first), Some(last)) = (comparison.heaps.first(), comparison.heaps.last()) {
        let grown = last.bytes.cast_signed().saturating_sub(first.bytes.cast_signed());
        let verb = if grown < 0 { "shrank" } else { "grew" };
        let part = in_percent(percent_of(grown, first.bytes));
        text += &format!("{verb} by {}{part}\n", bytes(grown.unsigned_abs()));
    }
    text += &holder_table(args, "what grew or shrank, beyond its parts", &comparison.holders);
    text += &holder_table(args, "new", &comparison.added);
    text += &holder_table(args, "gone", &comparison.removed);
    text += &findings(&comparison.findings, args.columns());
    text += &change_table(args, "classes", &comparison.classes);
    text + &change_table(args, "types", &comparison.types)
}

fn holder_table(args: &CompareArgs, title: &str, rows: &[HolderChange]) -> String {
    let (shown, of) = args.shown(args.holders(rows));
    if shown.is_empty() {
        return String::new();
    }
    let mut text = format!("\n{title}\n{:>12} {:>10}  path\n", "change", "retains");
    for row in &shown {
        let retained = row.retained.iter().rev().find_map(|&bytes| bytes).unwrap_or(0);
        let path = crop(&printable(&row.path), PATH_COLUMNS, Anchor::Right);
        let steady = if row.is_steady && row.retained.len() > 2 { "  steady" } else { "" };
        text +=
            &format!("{:>12} {:>10}  {path}{}{steady}\n", signed(row.growth), bytes(retained), counted(row));
    }
    text + &footer(shown.len(), of)
}

fn change_table(args: &CompareArgs, title: &str, rows: &[Change]) -> String {
    let (shown, of) = args.shown(args.changes(rows));
    if shown.is_empty() {
        return String::new();
    }
    let mut text = format!("\n{title}\n{:>12} {:>10} {:>10}  name\n", "bytes", "count was", "count is");
    for row in &shown {
        let (before, now) = (row.counts.first().copied(), row.counts.last().copied());
        let name = crop(&printable(&row.name), PATH_COLUMNS, Anchor::Right);
        let steady = if row.is_steady && row.bytes.len() > 2 { "  steady" } else { "" };
        text += &format!(
            "{:>12} {:>10} {:>10}  {name}{steady}\n",
            signed(row.growth()),
            before.unwrap_or(0),
            now.unwrap_or(0)
        );
    }
    text + &footer(shown.len(), of)
}

/// What is wrong that was not, is no more, or matters more or less.
fn findings(diff: &FindingsDiff, columns: usize) -> String {
    let mut text = String::new();
    if !diff.new.is_empty() {
        text += "\nnew findings\n";
        text.extend(diff.new.iter().map(|finding| one(finding, columns)));
    }
    let line = |finding: &Finding, what: &str| {
        let place = finding.place.as_ref().map(|place| format!(" at {}", place.path)).unwrap_or_default();
        let line = format!("  {}{place}{what}", finding.kind.name());
        format!("{}\n", crop(&printable(line.as_bytes()), columns, Anchor::Left))
    };
    if !diff.resolved.is_empty() {
        text += "\nfindings that are gone\n";
        text.extend(diff.resolved.iter().map(|finding| line(finding, "")));
    }
    if !diff.changed.is_empty() {
        text += "\nfindings that changed\n";
        text.extend(diff.changed.iter().map(|(was, now)| {
            let change = format!(": {} -> {}", bytes(was.impact_bytes), bytes(now.impact_bytes));
            line(now, &change)
        }));
    }
    text
}

/// How its number of elements changed.
fn counted(row: &HolderChange) -> String {
    match (row.counts.first().copied().flatten(), row.counts.last().copied().flatten()) {
        (Some(before), Some(now)) if before != now => format!("  ({before} -> {now} elements)"),
        (None, Some(now)) if row.retained.first().is_some_and(Option::is_none) => {
            format!("  ({now} elements)")
        }
        _ => String::new(),
    }
}

fn footer(shown: usize, of: usize) -> String {
    cut(shown, of).map(|cut| cut + "\n").unwrap_or_default()
}

fn signed(growth: i64) -> String {
    let sign = if growth < 0 { '-' } else { '+' };
    format!("{sign}{}", bytes(growth.unsigned_abs()))
}

fn in_percent(percent: Option<f64>) -> String {
    percent.map(|percent| format!(" ({percent:+.1}%)")).unwrap_or_default()
}
