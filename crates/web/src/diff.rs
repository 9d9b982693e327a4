//! The page of a diff.

use std::collections::HashMap;

use borehole_analysis::amount::grouped;
use borehole_analysis::diff::{Basis, Change, DiffFrame, DiffNode, DiffRow, DiffView, Measure};
use borehole_analysis::leading;

use crate::escape::{markup, text};
use crate::json::{Object, list};
use crate::names::{Names, cut_end, cut_start};
use crate::page::{Parts, Words, beside, cut_table, heading};
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
    let calls = Calls::new(&view.tree);
    let rows = rows(view);
    let mut places = Places::default();
    let call_functions: Vec<i64> =
        calls.nodes.iter().map(|node| node.frame.map_or(-1, |frame| places.of(frame))).collect();
    let row_functions: Vec<i64> = rows.iter().map(|row| places.of(&row.frame)).collect();
    let frames = places.frames.iter();
    let names = Names::new(frames.map(|frame| (&frame.function[..], frame.file.as_deref())));
    let unit = Unit::of(view);
    Parts {
        title: "What changed".to_owned(),
        about: format!("{} → {}", text(before.as_bytes()), text(after.as_bytes())),
        facts: facts(view, unit),
        notes: notes(view, &calls, rows.len()),
        words: Words::CALLS,
        times: String::new(),
        key: KEY.to_owned(),
        is_wide: true,
        table: table(&rows, unit),
        table_title: "Functions".to_owned(),
        table_count: format!(
            "{} of {} functions shown",
            grouped(rows.len().min(WRITTEN_ROWS) as u64),
            grouped(view.functions.len() as u64)
        ),
        data: data(view, &calls, &call_functions, &row_functions, &rows, &names, unit),
    }
    .html()
}

const KEY: &str = r#"<p class="key"><span><i class="more-key"></i>more</span><span><i class="less-key"></i>less</span><span><i class="same-key"></i>not more than noise</span><span>boxes are as wide as the mean of both</span></p>"#;

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
            &|(row, _)| bits(row.own.before.value),
            &|(row, _)| bits(row.own.after.value),
            &|(row, _)| bits(row.own.difference()),
            &|(row, _)| bits(row.total.before.value),
            &|(row, _)| bits(row.total.after.value),
            &|(row, _)| bits(row.total.difference()),
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
struct Call<'v> {
    caller: Option<usize>,
    frame: Option<&'v DiffFrame>,
    own: [f64; 2],
    is_marked: bool,
}

/// The call paths that fit.
struct Calls<'v> {
    nodes: Vec<Call<'v>>,
    left_out: usize,
}

impl<'v> Calls<'v> {
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
                for (left, of_node) in rest[caller].iter_mut().zip(node.total) {
                    *left -= of_node;
                }
            }
            rest.push(std::array::from_fn(|side| node.total[side] - node.own[side]));
            let frame = Some(&*node.frame);
            let is_marked = node.is_marked;
            calls.nodes.push(Call { caller: caller.flatten(), frame, own: node.own, is_marked });
        }
        calls.add_rest(&rest, tree);
        calls
    }

    /// Adds the part of a call that is in none of the calls shown below it.
    fn add_rest(&mut self, rest: &[[f64; 2]], tree: &[DiffNode]) {
        let all: f64 = tree.iter().filter(|node| node.caller.is_none()).map(size).sum();
        for (caller, rest) in rest.iter().enumerate() {
            let own = rest.map(|side| side.max(0.0));
            if own[0] + own[1] > all * 1e-6 {
                self.nodes.push(Call { caller: Some(caller), frame: None, own, is_marked: false });
            }
        }
    }
}

fn size(node: &DiffNode) -> f64 {
    f64::midpoint(node.total[0], node.total[1])
}

/// How values are printed.
#[derive(Clone, Copy)]
struct Unit {
    factor: f64,
    name: &'static str,
}

impl Unit {
    fn of(view: &DiffView) -> Self {
        let whole = view.whole.before.value.max(view.whole.after.value);
        let (factor, name) = match view.measure {
            Measure::Share => (100.0, "%"),
            Measure::Samples => (1.0, ""),
            Measure::Seconds if whole >= 1.0 => (1.0, " s"),
            Measure::Seconds if whole >= 1e-3 => (1e3, " ms"),
            Measure::Seconds => (1e6, " µs"),
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

    fn change(self, change: &Change) -> String {
        let sign = if change.difference() > 0.0 { "+" } else { "" };
        format!("{sign}{}", self.text(change.difference()))
    }
}

fn facts(view: &DiffView, unit: Unit) -> Vec<(String, String)> {
    let marked = view.functions.iter().filter(|row| row.own.is_marked || row.total.is_marked).count();
    let mut facts = vec![
        ("Samples before".to_owned(), grouped(view.before.summary.samples)),
        ("Samples after".to_owned(), grouped(view.after.summary.samples)),
    ];
    if view.measure != Measure::Share {
        facts.push(("Whole before".to_owned(), unit.text(view.whole.before.value)));
        facts.push(("Whole after".to_owned(), unit.text(view.whole.after.value)));
        facts.push(("Change of the whole".to_owned(), unit.change(&view.whole)));
    }
    facts.push(("Functions".to_owned(), grouped(view.functions.len() as u64)));
    facts.push(("Changed beyond noise".to_owned(), grouped(marked as u64)));
    facts
}

fn notes(view: &DiffView, calls: &Calls<'_>, rows: usize) -> Vec<String> {
    let basis = match view.basis {
        Basis::Stretches => "by how much stretches of time of each side differ",
        Basis::Inputs => "by how much the inputs of each side differ",
        Basis::Independent => "as if samples were independent, because they keep no order",
    };
    let part = ((1.0 - view.confidence) * 1e5).round() / 1e3;
    let mut notes = vec![format!(
        "Noise is judged {basis}; of what is marked with * at most {part}% is expected to be noise."
    )];
    let left_out = view.pruned + calls.left_out;
    if left_out > 0 {
        notes.push(format!(
            "{} small call paths are shown as \u{201c}smaller calls\u{201d}.",
            grouped(left_out as u64)
        ));
    }
    for (side, what) in [(&view.before, "before"), (&view.after, "after")] {
        if side.summary.lost_bytes > 0 {
            notes.push(format!(
                "{} bytes of what came {what} could not be read.",
                grouped(side.summary.lost_bytes)
            ));
        }
    }
    notes.extend(cut_table(rows, view.functions.len(), "functions"));
    notes
}

fn table(rows: &[&DiffRow], unit: Unit) -> String {
    let heads =
        [(1, "Self before"), (2, "after"), (9, "change"), (3, "Total before"), (4, "after"), (10, "change")];
    let head: String = heads.map(|(sort, text)| heading(sort, text)).concat();
    let change = |change: &Change| {
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
            value(row.own.before.value),
            value(row.own.after.value),
            change(&row.own),
            value(row.total.before.value),
            value(row.total.after.value),
            change(&row.total),
            markup(&cut_end(&row.frame.function, 200)),
            beside(file.as_deref()),
        )
    });
    format!(
        "<table><thead><tr>{head}<th scope=\"col\">Function</th></tr></thead><tbody id=\"top-rows\">\n{}</tbody></table>",
        rows.collect::<String>()
    )
}

fn data(
    view: &DiffView,
    calls: &Calls<'_>,
    call_functions: &[i64],
    row_functions: &[i64],
    rows: &[&DiffRow],
    names: &Names,
    unit: Unit,
) -> String {
    let mut data = Object::new();
    data.text("kind", "diff").number("all", 1).number("distinct", view.functions.len());
    data.number("factor", unit.factor).text("unit", unit.name);
    write_names(&mut data, names);
    let caller = |call: &Call<'_>| call.caller.and_then(|place| i64::try_from(place).ok()).unwrap_or(-1);
    let mut tree = Object::new();
    tree.numbers("caller", calls.nodes.iter().map(caller)).numbers("fn", call_functions);
    data.raw("calls", &tree.end());
    let own = [0, 1].map(|side| list(calls.nodes.iter().map(|call| number(call.own[side]))));
    data.raw("own", &list(own));
    data.numbers("marked", calls.nodes.iter().map(|call| u8::from(call.is_marked)));
    let flag = |is_marked: bool| if is_marked { "1" } else { "0" }.to_owned();
    data.raw(
        "top",
        &list(rows.iter().zip(row_functions).map(|(row, function)| {
            let values =
                [&row.own, &row.total].map(|change| [change.before.value, change.after.value].map(number));
            let marks = [row.own.is_marked, row.total.is_marked, row.own.is_marked || row.total.is_marked];
            list(std::iter::once(function.to_string()).chain(values.concat()).chain(marks.map(flag)))
        })),
    );
    data.raw("cells", r#"{"call":[],"situation":[],"slice":[],"samples":[]}"#);
    data.raw("situations", "[]").raw("dimensions", "[]").raw("time", "null").raw("heat", "null");
    data.end()
}

/// Formats a value with the digits that are shown, and some more.
fn number(value: f64) -> String {
    if value == 0.0 { "0".to_owned() } else { format!("{value:.6e}") }
}
