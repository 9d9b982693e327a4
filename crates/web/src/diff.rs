//! The page of a diff.

use std::collections::HashMap;

use borehole_analysis::diff::{DiffFrame, DiffMeasure, DiffNode, DiffRow, DiffView, NoiseBasis, ValueChange};
use borehole_analysis::leading;
use borehole_text::{document, grouped, markup};

use crate::json::{Object, list};
use crate::names::{PageNames, cut_end, cut_start};
use crate::page::{PageTexts, beside, cut_table, table_section};
use crate::report::write_names;

/// The number of table rows in the page for each sort column, and the number shown without scripts.
const ROWS: usize = 1500;
const WRITTEN_ROWS: usize = 100;

/// The maximum number of call paths, and their maximum depth.
const CALLS: usize = 15_000;
const DEPTH: usize = 400;

/// One HTML file with the changes between two sides, called `before` and `after`: a red and blue flame graph and a table.
#[must_use]
pub fn diff_html(view: &DiffView, before: &str, after: &str) -> String {
    let diff = DiffParts::new(view, before, after);
    diff.texts.html(&table(&diff.rows, diff.unit), &diff.json(view))
}

/// The data of such a page as JSON, for an application that gets them from a server.
#[must_use]
pub fn diff_json(view: &DiffView, before: &str, after: &str) -> String {
    DiffParts::new(view, before, after).json(view)
}

/// The parts of a diff that are in its page, and the texts about it.
struct DiffParts<'v> {
    texts: PageTexts,
    calls: DiffCalls<'v>,
    rows: Vec<&'v DiffRow>,
    /// The functions of the calls and of the rows; -1 for none.
    call_functions: Vec<i64>,
    row_functions: Vec<i64>,
    names: PageNames,
    unit: DiffUnit,
}

impl<'v> DiffParts<'v> {
    fn new(view: &'v DiffView, before: &str, after: &str) -> Self {
        let calls = DiffCalls::new(&view.tree);
        let rows = rows(view);
        let mut places = Places::default();
        let call_functions =
            calls.nodes.iter().map(|node| node.frame.map_or(-1, |frame| places.of(frame))).collect();
        let row_functions = rows.iter().map(|row| places.of(&row.frame)).collect();
        let frames = places.frames.iter();
        let names = PageNames::new(frames.map(|frame| (&frame.function[..], frame.file.as_deref())));
        let unit = DiffUnit::of(view);
        let texts = PageTexts {
            title: "What changed".to_owned(),
            about: format!("{} → {}", document(before.as_bytes()), document(after.as_bytes())),
            facts: facts(view, unit),
            notes: notes(view, &calls, rows.len()),
        };
        Self { texts, calls, rows, call_functions, row_functions, names, unit }
    }

    fn json(&self, view: &DiffView) -> String {
        let Self { texts, calls, rows, call_functions, row_functions, names, unit } = self;
        let mut data = texts.object();
        data.text("kind", "diff").number("all", 1).number("distinct", view.functions.len());
        data.number("factor", unit.factor).text("unit", unit.name);
        write_names(&mut data, names);
        let caller =
            |call: &DiffCall<'_>| call.caller.and_then(|place| i64::try_from(place).ok()).unwrap_or(-1);
        let mut tree = Object::new();
        tree.numbers("caller", calls.nodes.iter().map(caller)).numbers("fn", call_functions);
        data.raw("calls", &tree.end());
        let self_values =
            [0, 1].map(|side| list(calls.nodes.iter().map(|call| number(call.self_values[side]))));
        data.raw("self", &list(self_values));
        data.numbers("marked", calls.nodes.iter().map(|call| u8::from(call.is_marked)));
        let flag = |is_marked: bool| if is_marked { "1" } else { "0" }.to_owned();
        data.raw(
            "top",
            &list(rows.iter().zip(row_functions).map(|(row, function)| {
                let values = [&row.self_change, &row.total_change]
                    .map(|change| [change.before.value, change.after.value].map(number));
                let marks = [
                    row.self_change.is_marked,
                    row.total_change.is_marked,
                    row.self_change.is_marked || row.total_change.is_marked,
                ];
                list(std::iter::once(function.to_string()).chain(values.concat()).chain(marks.map(flag)))
            })),
        );
        data.without_samples().end()
    }
}

/// The functions in the table: the first ones in the order of the view, and by each column.
fn rows(view: &DiffView) -> Vec<&DiffRow> {
    // Values are not negative, so their bits have the same order.
    let bits = |value: f64| value.abs().to_bits();
    let first = view.functions.len() as u64;
    leading(
        view.functions.iter().zip(0_u64..).collect(),
        ROWS,
        &[
            &|(_, place)| first - place,
            &|(row, _)| bits(row.self_change.before.value),
            &|(row, _)| bits(row.self_change.after.value),
            &|(row, _)| bits(row.self_change.difference()),
            &|(row, _)| bits(row.total_change.before.value),
            &|(row, _)| bits(row.total_change.after.value),
            &|(row, _)| bits(row.total_change.difference()),
        ],
    )
    .into_iter()
    .map(|(row, _)| row)
    .collect()
}

/// Functions in order of first use.
#[derive(Default)]
struct Places<'v> {
    frames: Vec<&'v DiffFrame>,
    index: HashMap<&'v DiffFrame, i64>,
}

impl<'v> Places<'v> {
    fn of(&mut self, frame: &'v DiffFrame) -> i64 {
        *self.index.entry(frame).or_insert_with(|| {
            self.frames.push(frame);
            i64::try_from(self.frames.len() - 1).unwrap_or(-1)
        })
    }
}

/// A call path of the page; `None` as the frame groups calls that are too small to be shown.
struct DiffCall<'v> {
    caller: Option<usize>,
    frame: Option<&'v DiffFrame>,
    self_values: [f64; 2],
    is_marked: bool,
}

/// The call paths that fit.
struct DiffCalls<'v> {
    nodes: Vec<DiffCall<'v>>,
    left_out: usize,
}

impl<'v> DiffCalls<'v> {
    fn new(tree: &'v [DiffNode]) -> Self {
        let mut sizes: Vec<f64> = tree.iter().map(size).collect();
        let least = if sizes.len() > CALLS {
            sizes.select_nth_unstable_by(CALLS, |one, other| other.total_cmp(one));
            sizes[CALLS]
        } else {
            -1.0
        };
        let mut calls = Self { nodes: Vec::new(), left_out: 0 };
        let mut place_of: Vec<Option<usize>> = Vec::with_capacity(tree.len());
        let mut depths: Vec<usize> = Vec::with_capacity(tree.len());
        let mut rest: Vec<[f64; 2]> = Vec::new();
        for node in tree {
            let depth = node.caller.map_or(1, |caller| depths[caller] + 1);
            depths.push(depth);
            let caller = node.caller.map(|caller| place_of[caller]);
            let is_kept = size(node) > least && depth <= DEPTH && caller != Some(None);
            place_of.push(is_kept.then_some(calls.nodes.len()));
            if !is_kept {
                calls.left_out += 1;
                continue;
            }
            if let Some(caller) = caller.flatten() {
                for (left, of_node) in rest[caller].iter_mut().zip(node.total_values) {
                    *left -= of_node;
                }
            }
            rest.push(std::array::from_fn(|side| node.total_values[side] - node.self_values[side]));
            let frame = Some(&*node.frame);
            let is_marked = node.is_marked;
            calls.nodes.push(DiffCall {
                caller: caller.flatten(),
                frame,
                self_values: node.self_values,
                is_marked,
            });
        }
        calls.add_rest(&rest, tree);
        calls
    }

    /// Adds the part of a call that is in none of the calls shown below it.
    fn add_rest(&mut self, rest: &[[f64; 2]], tree: &[DiffNode]) {
        let all: f64 = tree.iter().filter(|node| node.caller.is_none()).map(size).sum();
        for (caller, rest) in rest.iter().enumerate() {
            let self_values = rest.map(|side| side.max(0.0));
            if self_values[0] + self_values[1] > all * 1e-6 {
                self.nodes.push(DiffCall {
                    caller: Some(caller),
                    frame: None,
                    self_values,
                    is_marked: false,
                });
            }
        }
    }
}

fn size(node: &DiffNode) -> f64 {
    f64::midpoint(node.total_values[0], node.total_values[1])
}

/// The format of values.
#[derive(Clone, Copy)]
struct DiffUnit {
    factor: f64,
    name: &'static str,
}

impl DiffUnit {
    fn of(view: &DiffView) -> Self {
        let whole = view.whole.before.value.max(view.whole.after.value);
        let (factor, name) = match view.measure {
            DiffMeasure::Share => (100.0, "%"),
            DiffMeasure::Samples => (1.0, ""),
            DiffMeasure::Seconds if whole >= 1.0 => (1.0, " s"),
            DiffMeasure::Seconds if whole >= 1e-3 => (1e3, " ms"),
            DiffMeasure::Seconds => (1e6, " µs"),
        };
        Self { factor, name }
    }

    fn text(self, value: f64) -> String {
        let value = value * self.factor;
        let digits = match value.abs() {
            size if size >= 100.0 => 1,
            size if size >= 10.0 => 2,
            _ => 3,
        };
        format!("{value:.digits$}{}", self.name)
    }

    fn change(self, change: &ValueChange) -> String {
        let sign = if change.difference() > 0.0 { "+" } else { "" };
        format!("{sign}{}", self.text(change.difference()))
    }
}

fn facts(view: &DiffView, unit: DiffUnit) -> Vec<(String, String)> {
    let marked =
        view.functions.iter().filter(|row| row.self_change.is_marked || row.total_change.is_marked).count();
    let mut facts = vec![
        ("Samples before".to_owned(), grouped(view.before.summary.samples)),
        ("Samples after".to_owned(), grouped(view.after.summary.samples)),
    ];
    if view.measure != DiffMeasure::Share {
        facts.push(("Whole before".to_owned(), unit.text(view.whole.before.value)));
        facts.push(("Whole after".to_owned(), unit.text(view.whole.after.value)));
        facts.push(("Change of the whole".to_owned(), unit.change(&view.whole)));
    }
    facts.push(("Functions".to_owned(), grouped(view.functions.len() as u64)));
    facts.push(("Significant changes".to_owned(), grouped(marked as u64)));
    facts
}

fn notes(view: &DiffView, calls: &DiffCalls<'_>, rows: usize) -> Vec<String> {
    let basis = match view.basis {
        NoiseBasis::Stretches => "the variation between stretches of time of each side",
        NoiseBasis::Inputs => "the variation between the inputs of each side",
        NoiseBasis::Independent => {
            "the number of samples, as if they were independent, because they have no order"
        }
    };
    let part = ((1.0 - view.confidence) * 1e5).round() / 1e3;
    let mut notes =
        vec![format!("* significant (false discovery rate ≤ {part}%). Noise is estimated from {basis}.")];
    let left_out = view.pruned + calls.left_out;
    if left_out > 0 {
        notes.push(format!(
            "{} small call paths are grouped as \u{201c}smaller calls\u{201d}.",
            grouped(left_out as u64)
        ));
    }
    for (side, what) in [(&view.before, "before"), (&view.after, "after")] {
        if side.summary.lost_bytes > 0 {
            notes.push(format!(
                "{} bytes of the {what} side could not be read.",
                grouped(side.summary.lost_bytes)
            ));
        }
    }
    notes.extend(cut_table(rows, view.functions.len(), "functions"));
    notes
}

fn table(rows: &[&DiffRow], unit: DiffUnit) -> String {
    let heads = ["Self before", "after", "change", "Total before", "after", "change"];
    let change = |change: &ValueChange| {
        let class = match change.is_marked {
            true if change.difference() > 0.0 => " class=\"more\"",
            true => " class=\"less\"",
            false => "",
        };
        let mark = if change.is_marked { " *" } else { "" };
        format!("<td{class}>{}{mark}</td>", unit.change(change))
    };
    let rows = rows.iter().take(WRITTEN_ROWS).map(|row| {
        let file = row.frame.file.as_deref().map(|file| cut_start(file, 200));
        let value = |value| format!("<td>{}</td>", unit.text(value));
        format!(
            "<tr>{}{}{}{}{}{}<td>{}{}</td></tr>\n",
            value(row.self_change.before.value),
            value(row.self_change.after.value),
            change(&row.self_change),
            value(row.total_change.before.value),
            value(row.total_change.after.value),
            change(&row.total_change),
            markup(&cut_end(&row.frame.function, 200)),
            beside(file.as_deref()),
        )
    });
    table_section("Functions", &heads, "Function", rows)
}

/// Formats a value with the digits that are shown, and some more.
fn number(value: f64) -> String {
    if value == 0.0 { "0".to_owned() } else { format!("{value:.6e}") }
}
