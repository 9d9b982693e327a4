//! A comparison as text.

use borehole::heap::compare::{FindingsDiff, HeapComparison, HolderChange, HolderList, TotalChange};
use borehole::heap::findings::HeapFinding;
use borehole_text::{KeptEnd, TextColumn, TextTable, bytes, counted, crop, grouped, printable};

use super::CompareArgs;
use crate::cell::sized;
use crate::heap::report::text::one;
use crate::table::titled_by;

/// The fewest columns that a path is cut to.
const LEAST_COLUMNS: usize = 16;

pub(super) fn text(args: &CompareArgs, comparison: &HeapComparison) -> String {
    let columns =
        [TextColumn::name(""), TextColumn::number(""), TextColumn::number(""), TextColumn::name("")];
    let mut heaps = sized(TextTable::new(columns));
    for (position, heap) in comparison.heaps.iter().enumerate() {
        let name = if position == 0 { "base" } else { "then" };
        heaps.row([name, &bytes(heap.bytes), &counted(heap.nodes, "node"), &heap.created]);
    }
    let mut text = heaps.to_string();
    if let (Some(first), Some(last)) = (comparison.heaps.first(), comparison.heaps.last()) {
        let grown = last.bytes.cast_signed().saturating_sub(first.bytes.cast_signed());
        let verb = if grown < 0 { "shrank" } else { "grew" };
        let part = in_percent(grown, first.bytes);
        text += &format!("{verb} by {}{part}\n", bytes(grown.unsigned_abs()));
    }
    text += &holder_table(args, "holders that grew or shrank", &comparison.holders);
    text += &holder_table(args, "new holders", &comparison.added);
    text += &holder_table(args, "removed holders", &comparison.removed);
    text += &findings(&comparison.findings, args.columns());
    text += &change_table(args, "classes", &comparison.classes);
    text + &change_table(args, "types", &comparison.types)
}

fn holder_table(args: &CompareArgs, title: &str, list: &HolderList) -> String {
    let (shown, of) = args.shown(args.holders(list));
    let of = of + args.further(list).count();
    let numbers = ["change", "retained"].map(TextColumn::number);
    let mut table = changes(args, numbers.into(), "path");
    for row in &shown {
        let retained = row.retained.iter().rev().find_map(|&bytes| bytes).unwrap_or(0);
        let steady = if row.is_steady && row.retained.len() > 2 { "steady" } else { "" };
        let note = format!("{}  {steady}", elements(row));
        let path = printable(&row.path);
        let path = if row.alike > 1 { format!("{path} x {}", grouped(row.alike)) } else { path };
        table.row([signed(row.growth), bytes(retained), path, note.trim().to_owned()]);
    }
    titled_by(title, &table, [shown.len(), of], Some(args.limit_option))
}

fn change_table(args: &CompareArgs, title: &str, rows: &[TotalChange]) -> String {
    let (shown, of) = args.shown(args.changes(rows));
    let numbers = ["bytes", "old count", "new count"].map(TextColumn::number);
    let mut table = changes(args, numbers.into(), "name");
    for row in &shown {
        let [before, now] = [row.counts.first(), row.counts.last()].map(|count| count.copied().unwrap_or(0));
        let steady = if row.is_steady && row.bytes.len() > 2 { "steady" } else { "" };
        let growth = signed(row.growth());
        table.row([growth, grouped(before), grouped(now), printable(&row.name), steady.to_owned()]);
    }
    titled_by(title, &table, [shown.len(), of], Some(args.limit_option))
}

/// A table of columns with numbers, a name and a note.
fn changes(args: &CompareArgs, mut columns: Vec<TextColumn>, name: &str) -> TextTable {
    columns.extend([TextColumn::name(name).flexible(KeptEnd::Right), TextColumn::name("")]);
    sized(TextTable::new(columns).fit(args.columns(), LEAST_COLUMNS))
}

/// New, resolved and changed findings.
fn findings(diff: &FindingsDiff, columns: usize) -> String {
    let mut text = String::new();
    if !diff.new.is_empty() {
        text += "\nnew findings\n";
        text.extend(diff.new.iter().map(|finding| one(finding, columns)));
    }
    let line = |finding: &HeapFinding, what: &str| {
        let place = finding.place.as_ref().map(|place| format!(" at {}", place.path)).unwrap_or_default();
        let line = format!("  {}{place}{what}", finding.kind.name());
        format!("{}\n", crop(&printable(line.as_bytes()), columns, KeptEnd::Left))
    };
    if !diff.resolved.is_empty() {
        text += "\nresolved findings\n";
        text.extend(diff.resolved.iter().map(|finding| line(finding, "")));
    }
    if !diff.changed.is_empty() {
        text += "\nchanged findings\n";
        text.extend(diff.changed.iter().map(|(was, now)| {
            let change = format!(
                ": {} -> {} ({})",
                bytes(was.impact_bytes),
                bytes(now.impact_bytes),
                now.severity.name()
            );
            line(now, &change)
        }));
    }
    text
}

/// The change of its number of elements.
fn elements(row: &HolderChange) -> String {
    match (row.counts.first().copied().flatten(), row.counts.last().copied().flatten()) {
        (Some(before), Some(now)) if before != now => {
            format!("({} -> {} elements)", grouped(before), grouped(now))
        }
        (None, Some(now)) if row.retained.first().is_some_and(Option::is_none) => {
            format!("({})", counted(now, "element"))
        }
        _ => String::new(),
    }
}

fn signed(growth: i64) -> String {
    let sign = if growth < 0 { '-' } else { '+' };
    format!("{sign}{}", bytes(growth.unsigned_abs()))
}

fn in_percent(growth: i64, before: u64) -> String {
    borehole::heap::compare::growth_percent(growth, before)
        .map(|percent| format!(" ({percent:+.1}%)"))
        .unwrap_or_default()
}
