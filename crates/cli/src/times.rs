//! `borehole report --timeline` and `--heatmap`: when samples were taken.

use borehole::model::{LaneId, ValueType};
use borehole_analysis::{GroupValue, HeatMap, SampleSelection, Timeline, TimelineRow};
use borehole_text::{KeptEnd, crop, grouped, pad, printable, with_unit};
use serde_json::{Value, json};

use crate::cell::terminal_width;
use crate::exit::Exit;
use crate::filter::check_value;
use crate::report::{process_id, thread_id};
use crate::report_command::ReportCommand;
use crate::stdout::{STDOUT, put};

/// Marks from zero to the maximum.
const BARS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const SHADES: [char; 5] = [' ', '░', '▒', '▓', '█'];

/// Columns for the name of a thread.
const NAME_COLUMNS: usize = 24;

/// Rows of the heat map per line of text.
const ROWS_A_LINE: usize = 5;

/// The number of slices of a timeline in JSON.
const SLICES: usize = 512;

pub(crate) fn run(args: &ReportCommand) -> anyhow::Result<Exit> {
    let sink = args.report.value.profile();
    let (sink, tables, recovery) = args
        .report
        .shape
        .reading(sink, |tables, sink| args.inputs.read_onto(tables, &args.samples.alone(), sink, STDOUT))?;
    let (builder, heat) = sink.into_parts();
    check_value(builder.weigher())?;
    let (profile, heat) = (builder.into_profile(tables), heat.into_view());
    let columns = terminal_width();
    let slices = if args.report.json { SLICES } else { columns.saturating_sub(NAME_COLUMNS + 14).max(8) };
    let timeline = profile.timeline(&SampleSelection::default(), profile.default_weight());
    let value_type = profile.value_type(profile.default_weight());
    let timeline = timeline.map(|timeline| timeline.joined(slices));
    let text = if args.report.json {
        format!("{}\n", object(args, timeline.as_ref(), &heat))
    } else {
        text(args, timeline.as_ref(), &heat, (columns, &value_type))
    };
    put(&text, args.report.json)?;
    Ok(Exit::after(&recovery))
}

fn text(
    args: &ReportCommand,
    timeline: Option<&Timeline>,
    heat: &HeatMap,
    (columns, value_type): (usize, &ValueType),
) -> String {
    let Some(timeline) = timeline else {
        return "This profile has no timestamps, so there is no timeline or heat map. \
                Record with --timestamps delta.\n"
            .to_owned();
    };
    let mut lines = Vec::new();
    if args.page.timeline {
        lines.extend(timeline_lines(timeline, args, value_type));
    }
    if args.page.heatmap {
        lines.extend(heat_lines(heat, columns));
    }
    if heat.without_time > 0 {
        lines.push(format!("  {} samples have no timestamps and are not shown", grouped(heat.without_time)));
    }
    lines.join("\n") + "\n"
}

#[expect(clippy::cast_precision_loss, reason = "hundredths are shown")]
fn seconds(ns: i64) -> f64 {
    ns as f64 / 1e9
}

fn timeline_lines(timeline: &Timeline, args: &ReportCommand, value_type: &ValueType) -> Vec<String> {
    let whole = timeline.span.whole();
    let slice_ns = i64::try_from(timeline.span.slice_ns).unwrap_or(i64::MAX);
    let [start, end, slice] = [whole.start_ns, whole.end_ns, slice_ns].map(seconds);
    let shown = args.report.rows().unwrap_or(usize::MAX);
    let most = timeline.rows.iter().flat_map(|row| &row.slices).copied().max().unwrap_or(1);
    let of_most = match value_type.is_samples() {
        true => most.to_string(),
        false => with_unit(most, &value_type.unit),
    };
    let kind = printable(value_type.kind.as_bytes());
    let mut lines = vec![format!(
        "# timeline: {start:.2} to {end:.2} s, {slice:.3} s per column, maximum {of_most} {kind}"
    )];
    lines.extend(timeline.rows.iter().take(shown).map(|row| {
        let bars: String =
            row.slices.iter().map(|&sum| mark(&BARS, above_zero(sum), above_zero(most))).collect();
        format!(
            "{} {:>10} |{bars}|",
            pad(&crop(&thread_text(row), NAME_COLUMNS, KeptEnd::Left), NAME_COLUMNS),
            with_unit(row.weight, &value_type.unit)
        )
    }));
    if timeline.rows.len() > shown {
        lines.push(format!(
            "  ({shown} of {} threads shown; --all for all)",
            grouped(timeline.rows.len() as u64)
        ));
    }
    lines
}

fn heat_lines(heat: &HeatMap, columns: usize) -> Vec<String> {
    let room = columns.saturating_sub(10).max(10);
    let joined = heat.columns().div_ceil(room).max(1);
    let shown = heat.columns().div_ceil(joined);
    let lines_of_map = heat.rows / ROWS_A_LINE;
    let mut cells = vec![0_u64; shown * lines_of_map];
    for (place, count) in heat.samples.iter().enumerate() {
        let (column, row) = (place / heat.rows / joined, place % heat.rows / ROWS_A_LINE);
        let cell = &mut cells[column * lines_of_map + row];
        *cell = cell.saturating_add(*count);
    }
    let most = cells.iter().copied().max().unwrap_or(0);
    #[expect(clippy::cast_precision_loss, reason = "tenths are shown")]
    let [column, line] =
        [heat.column_ns as f64 * joined as f64 / 1e9, heat.column_ns as f64 / 1e6 / lines_of_map as f64];
    let mut lines = vec![format!(
        "# heat map: from {:.1} s, {column} s per column, {line:.0} ms per line from bottom to top, maximum {most} samples",
        seconds(heat.start_ns)
    )];
    for row in (0..lines_of_map).rev() {
        let marks: String =
            (0..shown).map(|column| mark(&SHADES, cells[column * lines_of_map + row], most)).collect();
        lines.push(format!("{:>6.0} ms|{marks}|", line * f64::from(u32::try_from(row).unwrap_or(0))));
    }
    lines
}

fn above_zero(sum: i64) -> u64 {
    u64::try_from(sum).unwrap_or(0)
}

/// The mark for a count: the first one only for 0.
fn mark(marks: &[char], count: u64, most: u64) -> char {
    let steps = marks.len() as u64 - 1;
    let step = u128::from(count) * u128::from(steps);
    let step = step.div_ceil(u128::from(most.max(1)));
    marks[usize::try_from(step).unwrap_or(0).min(marks.len() - 1)]
}

fn thread_text(row: &TimelineRow) -> String {
    let interpreter = row.interpreter.map(|interpreter| format!(", interpreter {interpreter}"));
    thread_name(&row.thread) + &interpreter.unwrap_or_default()
}

fn thread_name(thread: &GroupValue) -> String {
    match thread {
        GroupValue::Thread { thread, name: Some(name), .. } => {
            format!("{} {}", LaneId::of(*thread), printable(name))
        }
        GroupValue::Thread { thread, .. } => format!("thread {}", LaneId::of(*thread)),
        _ => "all".to_owned(),
    }
}

fn object(args: &ReportCommand, timeline: Option<&Timeline>, heat: &HeatMap) -> Value {
    let mut object = json!({ "schema_version": 1, "samples_without_time": heat.without_time });
    if args.page.timeline {
        object["timeline"] = timeline.map_or(Value::Null, |timeline| {
            json!({
                "start_ns": timeline.span.start_ns,
                "slice_ns": timeline.span.slice_ns,
                "threads": timeline.rows.iter().map(thread_object).collect::<Vec<_>>(),
            })
        });
    }
    if args.page.heatmap {
        object["heat_map"] = json!({
            "start_ns": heat.start_ns,
            "column_ns": heat.column_ns,
            "columns": (0..heat.columns()).map(|column| heat.column(column)).collect::<Vec<_>>(),
        });
    }
    object
}

fn thread_object(row: &TimelineRow) -> Value {
    let mut object = json!({ "samples": row.weight, "slices": row.slices });
    if let GroupValue::Thread { process, thread, name } = &row.thread {
        object["tid"] = json!(thread_id(*thread));
        if let Some(process) = process {
            object["pid"] = json!(process_id(*process));
        }
        if let Some(name) = name {
            object["name"] = String::from_utf8_lossy(name).into();
        }
    }
    if let Some(interpreter) = row.interpreter {
        object["interpreter"] = interpreter.into();
    }
    object
}
