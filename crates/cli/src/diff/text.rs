//! A diff as text that fits 80 columns.

use std::collections::{BTreeSet, HashSet};
use std::ffi::OsString;

use borehole_analysis::diff::{
    Amount, DiffFrame, DiffMeasure, DiffSide, DiffView, NoiseBasis, Per, Presence, ValueChange,
};
use borehole_analysis::tokio::TokioChange;
use borehole_text::{KeptEnd, TextColumn, TextTable, counted, crop, grouped, printable, with_unit};

use super::ShownDiff;
use super::trace;
use crate::cell::sized;
use crate::filter::other_value_types;

/// The fewest columns that a name is cut to.
const LEAST_COLUMNS: usize = 12;

/// The whole diff.
pub(crate) fn text(view: &DiffView, tokio: &[TokioChange], args: &ShownDiff<'_>, columns: usize) -> String {
    let scale = ValueScale::of(view);
    let mut lines = vec![
        side("before", &view.before, &args.names[0], columns),
        side("after ", &view.after, &args.names[1], columns),
        format!("values: {}", values(view, args, &scale)),
        format!("noise:  {}", noise(view, args.inputs)),
    ];
    lines.extend(notes(view));
    if args.is_focused || view.measure != DiffMeasure::Share {
        let whole = view.whole;
        lines.push(format!("whole:  {}", numbers(&whole, &scale).join("  ").trim_end()));
    }
    lines.push(String::new());
    if !tokio.is_empty() {
        lines.extend(trace::lines(tokio, args.limit.count(), columns));
        lines.push(String::new());
        if view.functions.is_empty() {
            return lines.join("\n");
        }
    }
    lines.extend(functions(view, args, &scale, columns));
    lines.push(String::new());
    lines.extend(paths(view, args, &scale, columns));
    lines.push(String::new());
    lines.join("\n")
}

/// The unit of printed values, and the factor that leads to it.
struct ValueScale {
    unit: &'static str,
    factor: f64,
}

impl ValueScale {
    fn of(view: &DiffView) -> Self {
        let whole = view.whole.before.value.max(view.whole.after.value);
        let (unit, factor) = match view.measure {
            DiffMeasure::Share => ("%", 100.0),
            DiffMeasure::Samples => ("samples", 1.0),
            DiffMeasure::Seconds if whole >= 1.0 => ("s", 1.0),
            DiffMeasure::Seconds if whole >= 1e-3 => ("ms", 1e3),
            DiffMeasure::Seconds => ("us", 1e6),
        };
        Self { unit, factor }
    }

    fn value(&self, amount: Amount) -> String {
        if amount.samples == 0 { "-".to_owned() } else { number(amount.value * self.factor) }
    }
}

/// A number with its significant digits.
fn number(value: f64) -> String {
    match value.abs() {
        size if size >= 100_000.0 => format!("{value:.2e}"),
        size if size >= 100.0 => format!("{value:.1}"),
        size if size >= 10.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

/// A fraction as a percentage.
pub(crate) fn percent(part: f64) -> String {
    format!("{}%", (part * 1e4).round() / 1e2)
}

fn side(name: &str, side: &DiffSide, names: &[OsString], columns: usize) -> String {
    let time = side.summary.time_ns.map(|time_ns| {
        #[expect(clippy::cast_precision_loss, reason = "hundredths are shown")]
        let seconds = time_ns as f64 / 1e9;
        format!(", {seconds:.2} s sampled")
    });
    let names: Vec<_> = names.iter().map(|name| printable(name.as_encoded_bytes())).collect();
    let files = match names.len() {
        1 => names.concat(),
        many => format!("{many} files"),
    };
    let samples = grouped(side.summary.samples);
    let facts = match (&side.value_type, side.value) {
        (Some(value_type), Some(value)) => {
            let whole = format!("{} {}", with_unit(value, &value_type.unit), value_type.kind);
            format!("{} in {samples} records", printable(whole.as_bytes()))
        }
        _ => format!("{samples} samples{}", time.unwrap_or_default()),
    };
    let lost = match side.summary.lost_bytes {
        0 => String::new(),
        bytes => format!(", {bytes} bytes lost"),
    };
    crop(&format!("{name}: {facts}{lost}: {files}"), columns, KeptEnd::Left)
}

fn values(view: &DiffView, args: &ShownDiff<'_>, scale: &ValueScale) -> String {
    let of = match view.measure {
        DiffMeasure::Share => {
            let what = view.before.value_type.as_ref().or(view.after.value_type.as_ref());
            let what = what.map_or("samples", |value_type| &value_type.kind);
            return format!("% of all {what} of each side");
        }
        DiffMeasure::Samples => {
            view.before.value_type.as_ref().map_or("samples", |value_type| &value_type.unit)
        }
        DiffMeasure::Seconds => scale.unit,
    };
    let [before, after] = [&view.before, &view.after].map(|side| number(side.divisor));
    match args.per {
        Per::Samples => of.to_owned(),
        Per::Time => format!("{of} per second, over {before} and {after} s"),
        Per::Input => format!("{of} per input, over {before} and {after} inputs"),
        Per::Label(key) => format!("{of} per {}, over {before} and {after} values", printable(key)),
    }
}

fn noise(view: &DiffView, inputs: &str) -> String {
    let part = ((1.0 - view.confidence) * 1e5).round() / 1e3;
    let basis = match view.basis {
        NoiseBasis::Independent => "samples have no order: treated as independent".to_owned(),
        NoiseBasis::Inputs => {
            format!("estimated from {} and {} {inputs}", view.before.inputs, view.after.inputs)
        }
        NoiseBasis::Stretches => {
            format!("estimated from {} and {} stretches of time", view.before.stretches, view.after.stretches)
        }
    };
    format!("{basis}\n        * significant (false discovery rate ≤ {part}%)")
}

fn notes(view: &DiffView) -> Vec<String> {
    let mut notes = Vec::new();
    let sides = [&view.before, &view.after].into_iter().filter(|side| side.value_type.is_some());
    let others: BTreeSet<_> = sides.flat_map(|side| &side.others).collect();
    if let Some(others) = other_value_types(others) {
        notes.push(format!("note:   {others}"));
    }
    if view.moved > 0 {
        notes.push(format!(
            "note:   {} moved to other files; --key function compares by name",
            counted(view.moved as u64, "function")
        ));
    }
    notes
}

/// The numbers of a change; a mark follows the last.
fn numbers(change: &ValueChange, scale: &ValueScale) -> [String; 3] {
    let difference = match change.difference() * scale.factor {
        0.0 => "0".to_owned(),
        difference if difference > 0.0 => format!("+{}", number(difference)),
        difference => number(difference),
    };
    let mark = if change.is_marked { "*" } else { " " };
    [scale.value(change.before), scale.value(change.after), difference + mark]
}

/// A table with the numbers of changes before names and notes.
fn table(groups: &[&'static str], name: &str, columns: usize) -> TextTable {
    let numbers = groups.iter().flat_map(|_| ["before", "after", "change "].map(TextColumn::number));
    let names = [TextColumn::name(name).flexible(KeptEnd::Right), TextColumn::name("")];
    let groups: Vec<_> = groups.iter().map(|&group| (group, 3)).collect();
    sized(TextTable::new(numbers.chain(names)).grouped(groups).fit(columns, LEAST_COLUMNS))
}

fn functions(view: &DiffView, args: &ShownDiff<'_>, scale: &ValueScale, columns: usize) -> Vec<String> {
    let shown = args.limit.count();
    let ambiguous = ambiguous(view);
    let mut table = table(&["self", "total"], "function", columns);
    for row in view.functions.iter().take(shown) {
        let changes = [&row.self_change, &row.total_change].map(|change| numbers(change, scale));
        let is_ambiguous = ambiguous.contains(&row.frame.function[..]) || row.frame.line.is_some();
        let name = if is_ambiguous { frame_text(&row.frame) } else { printable(&row.frame.function) };
        let presence = presence_text(Presence::of(&row.total_change)).to_owned();
        table.row(changes.into_iter().flatten().chain([name, presence]));
    }
    let mut lines = table.lines();
    let marked =
        view.functions.iter().filter(|row| row.self_change.is_marked || row.total_change.is_marked).count();
    lines.push(footer(shown, view.functions.len(), "functions", Some(marked)));
    lines
}

fn paths(view: &DiffView, args: &ShownDiff<'_>, scale: &ValueScale, columns: usize) -> Vec<String> {
    let shown = args.limit.count();
    let mut table = table(&["self"], "call path", columns);
    for path in view.paths.iter().take(shown) {
        let names: Vec<_> = path.frames.iter().map(|frame| printable(&frame.function)).collect();
        let presence = presence_text(Presence::of(&path.total_change)).to_owned();
        table.row(numbers(&path.self_change, scale).into_iter().chain([names.join(" > "), presence]));
    }
    let mut lines = table.lines();
    lines.push(footer(shown.min(view.paths.len()), view.distinct_paths, "call paths", None));
    lines
}

/// The names of functions that are in several files.
fn ambiguous(view: &DiffView) -> HashSet<&[u8]> {
    let mut once = HashSet::new();
    let names = view.functions.iter().map(|row| &row.frame.function[..]);
    names.filter(|name| !once.insert(*name)).collect()
}

const fn presence_text(presence: Presence) -> &'static str {
    match presence {
        Presence::Both => "",
        Presence::Appeared => "(new)",
        Presence::Vanished => "(gone)",
    }
}

fn footer(shown: usize, distinct: usize, what: &str, marked: Option<usize>) -> String {
    let [shown, all] = [shown.min(distinct), distinct].map(|count| grouped(count as u64));
    let more = if shown == all { String::new() } else { "; --limit 0 for all".to_owned() };
    let marked = marked.map(|marked| format!(", {} significant", grouped(marked as u64)));
    format!("  ({shown} of {all} {what} shown{}{more})", marked.unwrap_or_default())
}

/// A function with the name of its file and its line, if known.
pub(crate) fn frame_text(frame: &DiffFrame) -> String {
    let mut text = printable(&frame.function);
    if let Some(file) = &frame.file {
        let short = file.rsplit(|&byte| byte == b'/').next().unwrap_or(file);
        text += &format!(" {}", printable(short));
    }
    if let Some(line) = frame.line {
        text += &format!(":{line}");
    }
    text
}
