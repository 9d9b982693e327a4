//! The page of a profile.

use borehole_analysis::{
    DimensionKind, DimensionValue, FlameChart, HeatMap, ProfilePage, ProfileSummary, Timespan,
};
use borehole_model::{Mode, ValueType};
use borehole_text::{document, duration, grouped, markup, percent, percent_of, with_unit};

use crate::chart::chart_json;
use crate::json::{Object, list};
use crate::names::{PageNames, cut_end};
use crate::page::{PageTexts, beside, cut_table, table_section};

/// The number of table rows in the page without scripts.
const WRITTEN_ROWS: usize = 100;

/// The limit for a label value or a thread name, in bytes.
const VALUE_BYTES: usize = 80;

/// The maximum number of heat map columns: more could not be distinguished.
const HEAT_COLUMNS: usize = 1800;

/// One HTML file with everything about a profile that fits into some megabytes: calls, top table, timeline, heat map, and
/// `chart`, if times are known.
///
/// `title` may be any text.
#[must_use]
pub fn report_html(page: &ProfilePage, heat: &HeatMap, chart: Option<&FlameChart>, title: &str) -> String {
    let report = Report::new(page, heat, title);
    let data = report.json(&[], chart);
    report.texts.html(&table(page, &report.names, report.all), &data)
}

/// The data of such a page as JSON, for an application that gets them from a server. `value_types` are those that it can ask for.
#[must_use]
pub fn report_json(page: &ProfilePage, heat: &HeatMap, title: &str, value_types: &[ValueType]) -> String {
    Report::new(page, heat, title).json(value_types, None)
}

/// A profile, and the texts about it.
struct Report<'p> {
    page: &'p ProfilePage,
    heat: &'p HeatMap,
    texts: PageTexts,
    names: PageNames,
    /// The weight of all samples.
    all: i64,
}

impl<'p> Report<'p> {
    fn new(page: &'p ProfilePage, heat: &'p HeatMap, title: &str) -> Self {
        let functions = page.functions.iter();
        let names = PageNames::new(functions.map(|function| (&function.name[..], function.file.as_deref())));
        let all: i64 = page.cells.iter().fold(0, |all, cell| all.saturating_add(cell.value));
        let texts = PageTexts {
            title: document(title.as_bytes()),
            about: about(page),
            facts: facts(page),
            notes: notes(page, heat, all),
        };
        Self { page, heat, texts, names, all }
    }

    fn json(&self, value_types: &[ValueType], chart: Option<&FlameChart>) -> String {
        let value_types = value_types.iter().map(|of| {
            let (kind, unit) = (document(of.kind.as_bytes()), document(of.unit.as_bytes()));
            Object::new().text("kind", &kind).text("unit", &unit).end()
        });
        let mut data = self.texts.object();
        data.raw("value_types", &list(value_types));
        data.raw("chart", &chart.map_or_else(|| "null".to_owned(), chart_json));
        write_data(&mut data, self.page, self.heat, &self.names, self.all);
        data.end()
    }
}

#[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
fn facts(page: &ProfilePage) -> Vec<(String, String)> {
    let ProfileSummary {
        samples, time_ns, span_ns, threads, processes, is_valued, is_uncounted, value, ..
    } = page.summary;
    let mut facts = Vec::new();
    let mut add = |what: &str, much: String| facts.push((what.to_owned(), much));
    if is_valued {
        add(&document(page.value_type.kind.as_bytes()), with_unit(value, &page.value_type.unit));
    }
    add(if is_uncounted { "Records" } else { "Samples" }, grouped(samples));
    if let Some(time_ns) = time_ns.filter(|_| !is_valued) {
        add(sampled(page.summary.mode), duration(time_ns));
    }
    if let Some(span_ns) = span_ns.filter(|&span_ns| span_ns > 0) {
        add("Duration", duration(span_ns));
    }
    if let Some(rate) = page.summary.samples_per_second() {
        add("Samples per second", format!("{rate:.1}"));
    }
    if let [period] = page.summary.periods[..]
        && period.period_ns > 0
    {
        let each = if threads > 1 { " per thread" } else { "" };
        add("Sampling rate", format!("{:.0} Hz{each}", 1e9 / period.period_ns as f64));
    }
    if processes > 1 {
        add("Processes", grouped(processes as u64));
    }
    if threads > 0 {
        add("Threads", grouped(threads as u64));
    }
    add("Functions", grouped(page.distinct_functions as u64));
    add("Stacks", grouped(page.summary.stacks as u64));
    facts
}

/// The name of the time that samples measure.
fn sampled(mode: Mode) -> &'static str {
    match mode {
        Mode::Cpu => "Sampled CPU time",
        Mode::Gil => "Time with the GIL",
        Mode::Exception => "Time with an exception",
        _ => "Sampled time",
    }
}

/// Notes on the value type, and on the other ones in the profile.
fn value_notes(page: &ProfilePage) -> Vec<String> {
    let mut notes = Vec::new();
    let list = |kinds: &[String]| document(kinds.join(", ").as_bytes());
    let others: Vec<_> = page.summary.other_value_types.iter().map(ToString::to_string).collect();
    if !others.is_empty() {
        notes.push(format!(
            "Other value types: {}. Use --value NAME for a page of another type.",
            list(&others)
        ));
    }
    let hidden = page.summary.hidden.iter();
    let hidden: Vec<_> = hidden.map(|(kind, samples)| format!("{} of {kind}", grouped(*samples))).collect();
    if !hidden.is_empty() {
        notes.push(format!("Hidden samples of other kinds: {}.", list(&hidden)));
    }
    notes
}

fn about(page: &ProfilePage) -> String {
    let value_type = &page.value_type;
    if page.summary.is_valued && value_type.nanoseconds_per_unit().is_none() {
        return format!("{} by function", document(value_type.kind.as_bytes()));
    }
    "Where a program spends its time".to_owned()
}

fn notes(page: &ProfilePage, heat: &HeatMap, all: i64) -> Vec<String> {
    let amount = |value: i64| with_unit(value, &page.value_type.unit);
    let kind = document(page.value_type.kind.as_bytes());
    let mut notes = value_notes(page);
    let pruned = page.pruned;
    if pruned.paths > 0 {
        notes.push(format!(
            "{} call paths with less than {:.2}% of all {kind} each, or deeper than {} calls, are grouped as \u{201c}smaller \
             calls\u{201d}: {} of {} {kind}. The table counts everything.",
            grouped(pruned.paths as u64),
            pruned.share * 100.0,
            pruned.depth,
            amount(pruned.value),
            amount(all)
        ));
    }
    notes.extend(cut_table(page.top.len(), page.distinct_functions, "functions"));
    let summary = &page.summary;
    for (count, what) in [
        (summary.lost_bytes, "bytes of the input could not be read; their contents are missing"),
        (summary.warnings, "warnings occurred while reading"),
        (summary.empty, "samples have an empty stack and are in no call"),
        (summary.at_depth_limit, "samples reach the depth limit and may lack their outer calls"),
    ] {
        if count > 0 {
            notes.push(format!("{} {what}.", grouped(count)));
        }
    }
    if page.time.is_none() {
        notes.push("This profile has no timestamps, so there is no timeline or heat map. Record with --timestamps delta.".to_owned());
    } else if heat.without_time > 0 {
        notes.push(format!(
            "{} samples have no timestamps and are not in the timeline or the heat map.",
            grouped(heat.without_time)
        ));
    }
    notes
}

/// The heat map with few enough columns to be distinguished.
fn joined(heat: &HeatMap) -> HeatMap {
    let factor = heat.columns().div_ceil(HEAT_COLUMNS).max(1);
    if factor == 1 {
        return heat.clone();
    }
    // Joined columns interleave their rows: a longer column has longer parts.
    let columns = heat.columns().div_ceil(factor);
    let mut samples = vec![0_u64; columns * heat.rows];
    for (place, count) in heat.samples.iter().enumerate() {
        let joined = place / factor;
        samples[joined] = samples[joined].saturating_add(*count);
    }
    HeatMap { column_ns: heat.column_ns.saturating_mul(factor as u64), samples, ..heat.clone() }
}

fn table(page: &ProfilePage, names: &PageNames, all: i64) -> String {
    let share = |value: i64| percent(percent_of(value, all));
    let amount = |value: i64| markup(&document(with_unit(value, &page.value_type.unit).as_bytes()));
    let rows = page.top.iter().take(WRITTEN_ROWS).map(|row| {
        let (name, file) = names.get(row.function);
        format!(
            "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}{}</td></tr>\n",
            amount(row.self_weight),
            share(row.self_weight),
            amount(row.total_weight),
            share(row.total_weight),
            markup(name),
            beside(file),
        )
    });
    table_section("Functions", &["Self", "%", "Total", "%"], "Function", rows)
}

fn write_data(data: &mut Object, page: &ProfilePage, heat: &HeatMap, names: &PageNames, all: i64) {
    data.text("kind", "report").number("all", all).number("distinct", page.distinct_functions);
    data.text("value_kind", &document(page.value_type.kind.as_bytes()))
        .text("value_unit", &document(page.value_type.unit.as_bytes()));
    write_names(data, names);
    let place = |place: Option<usize>| place.and_then(|place| i64::try_from(place).ok()).unwrap_or(-1);
    let mut calls = Object::new();
    calls.numbers("caller", page.calls.iter().map(|call| place(call.caller)));
    calls.numbers("fn", page.calls.iter().map(|call| place(call.function)));
    data.raw("calls", &calls.end());
    let mut cells = Object::new();
    let mut at = 0;
    let steps = page.cells.iter().map(|cell| cell.call - std::mem::replace(&mut at, cell.call));
    cells.numbers("call", steps);
    cells.numbers("situation", page.cells.iter().map(|cell| cell.situation));
    cells.numbers("slice", page.cells.iter().map(|cell| place(cell.slice)));
    cells.numbers("values", page.cells.iter().map(|cell| cell.value));
    data.raw("cells", &cells.end());
    data.raw("situations", &list(page.situations.iter().map(list)));
    data.raw(
        "dimensions",
        &list(page.dimensions.iter().map(|dimension| {
            let mut object = Object::new();
            let (kind, name) = match &dimension.kind {
                DimensionKind::Thread => ("thread", "threads".to_owned()),
                DimensionKind::Interpreter => ("interpreter", "interpreters".to_owned()),
                DimensionKind::Label(key) => ("label", cut_end(key, VALUE_BYTES)),
            };
            let values: Vec<_> = dimension.values.iter().map(value_text).collect();
            object
                .text("kind", kind)
                .text("name", &name)
                .texts("values", values.iter().map(|value| &**value));
            object.end()
        })),
    );
    data.raw(
        "top",
        &list(page.top.iter().map(|row| {
            list([i64::try_from(row.function).unwrap_or(i64::MAX), row.self_weight, row.total_weight])
        })),
    );
    data.raw("time", &page.time.map_or("null".to_owned(), time_object));
    data.raw("heat", &if heat.columns() > 0 { heat_object(&joined(heat)) } else { "null".to_owned() });
}

/// Writes the names of functions as `data.names`, `data.files` and `data.file_names`.
pub(crate) fn write_names(data: &mut Object, names: &PageNames) {
    data.texts("names", names.names.iter().map(|name| &**name));
    data.numbers("files", &names.files);
    data.texts("file_names", names.file_names.iter().map(|name| &**name));
}

fn time_object(time: Timespan) -> String {
    let mut object = Object::new();
    object.number("start_ns", time.start_ns).number("slice_ns", time.slice_ns).number("slices", time.slices);
    object.end()
}

fn heat_object(heat: &HeatMap) -> String {
    let mut object = Object::new();
    object.number("start_ns", heat.start_ns).number("column_ns", heat.column_ns).number("rows", heat.rows);
    object.numbers("samples", &heat.samples);
    object.end()
}

fn value_text(value: &DimensionValue) -> String {
    match value {
        DimensionValue::Others(count) => format!("{} others", grouped(*count as u64)),
        DimensionValue::Known(value) => {
            value.text(|text| cut_end(text, VALUE_BYTES)).unwrap_or_else(|| "(none)".to_owned())
        }
    }
}
