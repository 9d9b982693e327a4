//! Changes between profiles, and between heaps.

use borehole::heap::compare::{HeapComparison, HolderChange, HolderList, TotalChange};
use borehole_analysis::diff::{DiffRow, DiffView, Presence};
use borehole_heap::findings::HeapFinding;
use borehole_text::{bytes, grouped, percent, percent_of};

use super::ask::Ask;
use super::heap::{name, number};
use super::table::{ViewCell, ViewTable};
use crate::limits::AnswerLimits;

/// The functions that changed, those whose change is more than noise first.
pub(super) fn of_profiles(view: &DiffView, ask: &Ask) -> ViewTable {
    let limit = ask.limit.unwrap_or(AnswerLimits::ROWS).max(1);
    let columns =
        ["significant", "self before %", "self after %", "total before %", "total after %", "function"];
    let rows = view.functions.iter().take(limit).map(|row| {
        let share = |value: f64| ViewCell::Percent(value * 100.0);
        let is_marked = row.self_change.is_marked || row.total_change.is_marked;
        vec![
            if is_marked { "yes" } else { "no" }.into(),
            share(row.self_change.before.value),
            share(row.self_change.after.value),
            share(row.total_change.before.value),
            share(row.total_change.after.value),
            name(&row.frame.function).into(),
        ]
    });
    let marked =
        view.functions.iter().filter(|row| row.self_change.is_marked || row.total_change.is_marked).count();
    let rows: Vec<_> = rows.collect();
    let only_in = |side: Presence, share: fn(&DiffRow) -> f64| {
        let is_there = |row: &&DiffRow| row.total_change.is_marked && Presence::of(&row.total_change) == side;
        let here = view.functions.iter().filter(is_there);
        here.map(|row| (name(&row.frame.function), share(row))).collect::<Vec<_>>()
    };
    let notes = [
        only("new", &only_in(Presence::Appeared, |row| row.total_change.after.value)),
        only("gone", &only_in(Presence::Vanished, |row| row.total_change.before.value)),
    ];
    let coverage = format!(
        "Shown {} of {} functions ({}); {marked} changed by more than noise.",
        rows.len(),
        view.functions.len(),
        percent(percent_of(rows.len() as u64, view.functions.len().max(1) as u64)),
    );
    ViewTable {
        title: "What changed, in shares of all samples of each side".to_owned(),
        unit: "%".to_owned(),
        total: 100,
        columns: columns.map(str::to_owned).to_vec(),
        rows,
        all_rows: view.functions.len(),
        coverage,
        notes: notes.into_iter().flatten().collect(),
        ..ViewTable::default()
    }
}

/// A note on functions that only one side has, by more than noise; `None` if there are none.
pub(crate) fn only(change: &str, functions: &[(String, f64)]) -> Option<String> {
    let (first, share) = functions.iter().max_by(|one, other| one.1.total_cmp(&other.1))?;
    let count = grouped(functions.len() as u64);
    let are = if functions.len() == 1 { "function is" } else { "functions are" };
    Some(format!(
        "{count} {are} {change} by more than noise; most: {first}, with {} in total",
        percent(share * 100.0)
    ))
}

/// The columns of changed heaps.
const HEAP_COLUMNS: [&str; 6] = ["change", "growth bytes", "before bytes", "after bytes", "node", "what"];

/// The changes between the first and the last heap: new findings, then holders, then classes, the largest change of each first.
pub(super) fn of_heaps(comparison: &HeapComparison, ask: &Ask) -> ViewTable {
    let limit = ask.limit.unwrap_or(AnswerLimits::ROWS).max(1);
    let mut holders: Vec<(&str, &HolderChange)> = Vec::new();
    let lists = [("changed", &comparison.holders), ("new", &comparison.added), ("gone", &comparison.removed)];
    for (change, list) in lists {
        holders.extend(list.rows.iter().map(|row| (change, row)));
    }
    holders.sort_by_key(|(_, row)| std::cmp::Reverse(row.growth.unsigned_abs()));
    let further = |list: &HolderList| list.further.len();
    let more: usize = lists.iter().map(|(_, list)| further(list)).sum();
    let mut classes: Vec<&TotalChange> = comparison.classes.iter().filter(|row| row.growth() != 0).collect();
    classes.sort_by_key(|row| std::cmp::Reverse(row.growth().unsigned_abs()));
    let findings = &comparison.findings;
    let mut rows: Vec<_> = findings.new.iter().map(|found| finding_row("new finding", found)).collect();
    rows.extend(holders.iter().take(limit).map(|(change, row)| holder_row(change, row)));
    rows.extend(classes.iter().take(limit).map(|row| class_row(row)));
    rows.extend(findings.resolved.iter().map(|found| finding_row("resolved finding", found)));
    let [first, last] =
        [comparison.heaps.first(), comparison.heaps.last()].map(|heap| heap.map_or(0, |heap| heap.bytes));
    let all = findings.new.len() + findings.resolved.len() + holders.len() + more + classes.len();
    ViewTable {
        title: format!("What changed, from {} to {} of reachable memory", bytes(first), bytes(last)),
        unit: "bytes".to_owned(),
        total: signed(last),
        columns: HEAP_COLUMNS.map(str::to_owned).to_vec(),
        coverage: format!(
            "Shown {} of {} holders and {} of {} classes that changed.",
            holders.len().min(limit),
            grouped((holders.len() + more) as u64),
            classes.len().min(limit),
            grouped(classes.len() as u64)
        ),
        rows,
        all_rows: all,
        notes: (!comparison.same_process)
            .then(|| "the heaps are of different processes, so holders are matched by their paths".to_owned())
            .into_iter()
            .collect(),
        next: vec!["heap_ask of a node in the last heap shows what holds it".to_owned()],
    }
}

fn signed(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

/// A size in one of the heaps; empty if it is not there.
fn size(bytes: Option<u64>) -> ViewCell {
    bytes.map_or_else(|| "".into(), number)
}

fn finding_row(change: &str, found: &HeapFinding) -> Vec<ViewCell> {
    let node = found.place.as_ref().map_or_else(String::new, |place| format!("n{}", place.node.0));
    let what = name(found.summary.as_bytes());
    vec![change.into(), number(found.impact_bytes), "".into(), "".into(), node.into(), what.into()]
}

fn holder_row(change: &str, row: &HolderChange) -> Vec<ViewCell> {
    let at = |sizes: &[Option<u64>], place: usize| size(sizes.get(place).copied().flatten());
    let node = row.nodes.last().copied().flatten().map_or_else(String::new, |node| format!("n{}", node.0));
    let alike = if row.alike > 1 { format!(" ({} alike)", grouped(row.alike)) } else { String::new() };
    vec![
        change.into(),
        row.growth.into(),
        at(&row.retained, 0),
        at(&row.retained, row.retained.len().saturating_sub(1)),
        node.into(),
        format!("{}{alike}", name(&row.path)).into(),
    ]
}

fn class_row(row: &TotalChange) -> Vec<ViewCell> {
    let [before, after] = [row.bytes.first(), row.bytes.last()].map(|bytes| size(bytes.copied()));
    let [count_before, count_after] =
        [row.counts.first(), row.counts.last()].map(|count| grouped(count.copied().unwrap_or(0)));
    let what = format!("{} ({count_before} → {count_after} objects)", name(&row.name));
    vec!["class".into(), row.growth().into(), before, after, "".into(), what.into()]
}
