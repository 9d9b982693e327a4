//! A diff as text that fits 80 columns.

use std::collections::{BTreeSet, HashSet};

use borehole_analysis::amount::with_unit;
use borehole_analysis::diff::{Amount, Basis, Change, DiffFrame, DiffSide, DiffView, Measure, Per, Presence};

use super::args::DiffArgs;
use crate::cell::{Anchor, crop, printable};
use crate::inputs::Inputs;
use crate::messages;
use crate::report::grouped;

/// Columns of the three numbers of a change, and of the mark behind them.
const NUMBERS: [usize; 3] = [8, 8, 9];

/// The whole diff.
pub(crate) fn text(view: &DiffView, args: &DiffArgs, sides: &[Inputs; 2], columns: usize) -> String {
    let scale = Scale::of(view);
    let mut lines = vec![
        side("before", &view.before, &sides[0], columns),
        side("after ", &view.after, &sides[1], columns),
        format!("values: {}", values(view, args, &scale)),
        format!("noise:  {}", noise(view)),
    ];
    lines.extend(notes(view));
    if args.stacks.focus.is_some() || view.measure != Measure::Share {
        let whole = view.whole;
        lines.push(format!("whole: {}", numbers(&whole, &scale)));
    }
    lines.push(String::new());
    lines.extend(functions(view, args, &scale, columns));
    lines.push(String::new());
    lines.extend(paths(view, args, &scale, columns));
    lines.push(String::new());
    lines.join("\n")
}

/// What values are printed in.
struct Scale {
    unit: &'static str,
    factor: f64,
}

impl Scale {
    fn of(view: &DiffView) -> Self {
        let whole = view.whole.before.value.max(view.whole.after.value);
        let (unit, factor) = match view.measure {
            Measure::Share => ("%", 100.0),
            Measure::Samples => ("samples", 1.0),
            Measure::Seconds if whole >= 1.0 => ("s", 1.0),
            Measure::Seconds if whole >= 1e-3 => ("ms", 1e3),
            Measure::Seconds => ("us", 1e6),
        };
        Self { unit, factor }
    }

    fn value(&self, amount: Amount) -> String {
        if amount.samples == 0 { "-".to_owned() } else { number(amount.value * self.factor) }
    }
}

/// A number with as many digits as say something.
fn number(value: f64) -> String {
    match value.abs() {
        size if size >= 100_000.0 => format!("{value:.2e}"),
        size if size >= 100.0 => format!("{value:.1}"),
        size if size >= 10.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

/// A part as per cent.
pub(crate) fn percent(part: f64) -> String {
    if part.is_finite() { format!("{}%", (part * 1e4).round() / 1e2) } else { "any part".to_owned() }
}

fn side(name: &str, side: &DiffSide, inputs: &Inputs, columns: usize) -> String {
    let time = side.summary.time_ns.map(|time_ns| {
        #[expect(clippy::cast_precision_loss, reason = "hundredths are shown")]
        let seconds = time_ns as f64 / 1e9;
        format!(", {seconds:.2} s sampled")
    });
    let names: Vec<_> = inputs.names().map(|name| printable(name.as_os_str().as_encoded_bytes())).collect();
    let files = match names.len() {
        1 => names.concat(),
        many => format!("{many} files"),
    };
    let samples = grouped(side.summary.samples);
    let facts = match (&side.value_type, side.value) {
        (Some(value_type), Some(value)) => {
            format!("{} {} in {samples} records", with_unit(value, &value_type.unit), value_type.kind)
        }
        _ => format!("{samples} samples{}", time.unwrap_or_default()),
    };
    let lost = match side.summary.lost_bytes {
        0 => String::new(),
        bytes => format!(", {bytes} bytes lost"),
    };
    crop(&format!("{name}: {facts}{lost}: {files}"), columns, Anchor::Left)
}

fn values(view: &DiffView, args: &DiffArgs, scale: &Scale) -> String {
    let of = match view.measure {
        Measure::Share => {
            let what = view.before.value_type.as_ref().or(view.after.value_type.as_ref());
            let what = what.map_or("samples", |value_type| &value_type.kind);
            return format!("shares of all {what} of a side, in %");
        }
        Measure::Samples => view.before.value_type.as_ref().map_or("samples", |value_type| &value_type.unit),
        Measure::Seconds => scale.unit,
    };
    let [before, after] = [&view.before, &view.after].map(|side| number(side.divisor));
    match &args.per {
        Per::Samples => of.to_owned(),
        Per::Time => format!("{of} a second of {before} and {after} s"),
        Per::Input => format!("{of} an input, of {before} and {after}"),
        Per::Label(key) => format!("{of} for each {}, of {before} and {after}", printable(key)),
    }
}

fn noise(view: &DiffView) -> String {
    let part = ((1.0 - view.confidence) * 1e5).round() / 1e3;
    let basis = match view.basis {
        Basis::Independent => "samples keep no order: taken for independent".to_owned(),
        Basis::Inputs => {
            format!("judged between {} and {} inputs", view.before.inputs, view.after.inputs)
        }
        Basis::Stretches => {
            format!("judged between {} and {} stretches of time", view.before.blocks, view.after.blocks)
        }
    };
    format!("{basis}\n        * changed; of those marked {part}% at most are expected to be noise")
}

fn notes(view: &DiffView) -> Vec<String> {
    let mut notes = Vec::new();
    let sides = [&view.before, &view.after].into_iter().filter(|side| side.value_type.is_some());
    let others: BTreeSet<_> = sides.flat_map(|side| &side.others).collect();
    if !others.is_empty() {
        let others: Vec<_> = others.iter().map(ToString::to_string).collect();
        notes.push(format!("note:   other value types: {}; --value NAME compares them", others.join(", ")));
    }
    if view.moved > 0 {
        notes.push(format!(
            "note:   {} in other files now; --key function compares by name",
            messages::counted(view.moved as u64, "function")
        ));
    }
    notes
}

/// The numbers of a change, and its mark.
fn numbers(change: &Change, scale: &Scale) -> String {
    let difference = match change.difference() * scale.factor {
        0.0 => "0".to_owned(),
        difference if difference > 0.0 => format!("+{}", number(difference)),
        difference => number(difference),
    };
    let mark = if change.is_marked { "*" } else { " " };
    let [before, after, changed] = NUMBERS;
    let [from, to] = [change.before, change.after].map(|amount| scale.value(amount));
    format!("{from:>before$}{to:>after$}{difference:>changed$}{mark}")
}

fn heading() -> String {
    let [before, after, changed] = NUMBERS;
    format!("{:>before$}{:>after$}{:>changed$} ", "before", "after", "change")
}

/// What stands above the numbers.
fn title(what: &str) -> String {
    format!("{:->width$} ", format!(" {what} ---"), width = NUMBERS.iter().sum::<usize>())
}

fn functions(view: &DiffView, args: &DiffArgs, scale: &Scale, columns: usize) -> Vec<String> {
    let shown = args.limit.count();
    let room = columns.saturating_sub(2 * (NUMBERS.iter().sum::<usize>() + 1) + 1).max(12);
    let ambiguous = ambiguous(view);
    let mut lines = vec![
        format!("{}{}", title("self"), title("total")).trim_end().to_owned(),
        format!("{0}{0} function", heading()),
    ];
    lines.extend(view.functions.iter().take(shown).map(|row| {
        let (own, total) = (numbers(&row.own, scale), numbers(&row.total, scale));
        let presence = presence_text(Presence::of(&row.total));
        let is_ambiguous = ambiguous.contains(&row.frame.function[..]) || row.frame.line.is_some();
        let name = if is_ambiguous { frame_text(&row.frame) } else { printable(&row.frame.function) };
        let name = crop(&name, room.saturating_sub(presence.len()), Anchor::Right);
        format!("{own}{total} {name}{presence}")
    }));
    let marked = view.functions.iter().filter(|row| row.own.is_marked || row.total.is_marked).count();
    lines.push(footer(shown, view.functions.len(), "functions", Some(marked)));
    lines
}

fn paths(view: &DiffView, args: &DiffArgs, scale: &Scale, columns: usize) -> Vec<String> {
    let shown = args.limit.count();
    let room = columns.saturating_sub(NUMBERS.iter().sum::<usize>() + 2).max(12);
    let mut lines = vec![title("self").trim_end().to_owned(), format!("{} call path", heading())];
    lines.extend(view.paths.iter().take(shown).map(|path| {
        let names: Vec<_> = path.frames.iter().map(|frame| printable(&frame.function)).collect();
        let presence = presence_text(Presence::of(&path.total));
        let name = crop(&names.join(" > "), room.saturating_sub(presence.len()), Anchor::Right);
        format!("{} {name}{presence}", numbers(&path.own, scale))
    }));
    lines.push(footer(shown.min(view.paths.len()), view.distinct_paths, "call paths", None));
    lines
}

/// The functions that stand in several files.
fn ambiguous(view: &DiffView) -> HashSet<&[u8]> {
    let mut once = HashSet::new();
    let names = view.functions.iter().map(|row| &row.frame.function[..]);
    names.filter(|name| !once.insert(*name)).collect()
}

const fn presence_text(presence: Presence) -> &'static str {
    match presence {
        Presence::Both => "",
        Presence::Appeared => " (new)",
        Presence::Vanished => " (gone)",
    }
}

fn footer(shown: usize, distinct: usize, what: &str, marked: Option<usize>) -> String {
    let [shown, all] = [shown.min(distinct), distinct].map(|count| grouped(count as u64));
    let more = if shown == all { String::new() } else { "; --limit 0 for all".to_owned() };
    let marked = marked.map(|marked| format!(", {} beyond noise", grouped(marked as u64)));
    format!("  ({shown} of {all} {what} shown{more}{})", marked.unwrap_or_default())
}

/// A function, with what tells it apart. Of a path its last part is shown.
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
