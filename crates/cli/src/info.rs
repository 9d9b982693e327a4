//! `borehole info`.

use std::cmp::Reverse;
use std::fmt::Display;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use borehole::model::Mode;
use borehole::{Format, RecordCounts, Recovery, Source, Warning, count_records, import_all};
use borehole_analysis::{Inventory, Numbers, SegmentFacts, Ticks};
use clap::Args;
use serde_json::{Map, Value, json};

use crate::cell::printable;
use crate::exit::Exit;
use crate::inputs::{self, Reading};
use crate::interrupt::Interruptible;
use crate::messages;
use crate::outputs::stdout_error;

/// What to look at.
#[derive(Args, Clone, Debug)]
#[command(mut_arg("lenient", |arg| arg.hide(true)))]
pub(crate) struct InfoArgs {
    /// Files to look at, one after the other; `-`, or none, is standard input
    #[arg(value_name = "INPUT")]
    paths: Vec<PathBuf>,

    #[command(flatten)]
    reading: Reading,

    /// Print one JSON object a file
    #[arg(long)]
    json: bool,
}

/// What is known of one file.
struct Info {
    name: String,
    format: Format,
    size_bytes: Option<u64>,
    inventory: Inventory,
    recovery: Recovery,
    /// What records there are, for formats that have them and inputs that can be read twice.
    records: RecordCounts,
}

/// Looks at every input, and ends as the worst of them does.
pub(crate) fn run(args: &InfoArgs) -> anyhow::Result<Exit> {
    let mut out = io::stdout().lock();
    let mut worst = Exit::Done;
    for (index, path) in inputs::names(&args.paths).enumerate() {
        let exit = match inspect(path, &args.reading) {
            Ok(info) => {
                print(&info, args.json, index, &mut out).map_err(stdout_error)?;
                messages::warnings(&info.name, &info.recovery);
                Exit::after(&info.recovery)
            }
            Err(error) => messages::failure(&error),
        };
        worst = worst.and(exit);
    }
    Ok(worst)
}

fn print(info: &Info, json: bool, index: usize, out: &mut impl Write) -> io::Result<()> {
    if json {
        return writeln!(out, "{}", object(info));
    }
    if index > 0 {
        writeln!(out)?;
    }
    text(info, out)
}

/// Reads on after damage: what is wrong with a file is part of what it is.
fn inspect(path: &Path, reading: &Reading) -> anyhow::Result<Info> {
    let input = Reading { lenient: true, ..reading.clone() }.open(path)?;
    let (name, format) = (input.name().to_owned(), input.format());
    let mut inventory = Inventory::default();
    let recovery = import_all([input], &mut Interruptible(&mut inventory))?;
    let again = if inputs::is_file(path) { Source::path(path).ok() } else { None };
    let size_bytes = again.as_ref().and_then(Source::size_bytes);
    let records = match again {
        Some(source) => count_records(format, source),
        None => RecordCounts::default(),
    };
    Ok(Info { name, format, size_bytes, inventory, recovery, records })
}

fn text(info: &Info, out: &mut impl Write) -> io::Result<()> {
    let Info { name, format, size_bytes, inventory, records, .. } = info;
    row(out, "file", name)?;
    row(out, "format", format_args!("{} ({})", format.name(), format.describe()))?;
    if let Some(bytes) = size_bytes {
        row(out, "size", format!("{bytes} bytes{}", per_record(*bytes, inventory)))?;
    }
    if inventory.events > 0 || *format == Format::Trc {
        event_rows(inventory, out)?;
    }
    if inventory.samples > 0 || *format != Format::Trc {
        sample_rows(inventory, out)?;
    }
    if *format == Format::Tachyon {
        tick_rows(inventory, out)?;
    }
    record_rows(records, out)?;
    if let [only] = &inventory.first_segments[..] {
        for (key, value) in &only.metadata {
            row(out, "metadata", format_args!("{key}={value}"))?;
        }
    }
    segment_rows(inventory, out)
}

/// Names of a file are no commands to the terminal, and no rows of their own.
fn row(out: &mut impl Write, key: &str, value: impl Display) -> io::Result<()> {
    writeln!(out, "{key:<14} {}", printable(value.to_string().as_bytes()))
}

/// What the samples of a profile are.
fn sample_rows(inventory: &Inventory, out: &mut impl Write) -> io::Result<()> {
    let mut row = |key: &str, value: String| row(out, key, value);
    row("samples", format!("{} in {} runs", inventory.samples, inventory.records))?;
    row("stacks", stacks(inventory))?;
    row("frames", format!("{} distinct; {} strings", inventory.frames, inventory.strings))?;
    row("segments", segments(inventory))?;
    row("period", periods(inventory))?;
    if let Some(modes) = modes(inventory) {
        row("mode", modes)?;
    }
    if let Some((first, last)) = inventory.time_ns {
        row("time span", seconds(i128::from(last) - i128::from(first)))?;
    }
    for (what, numbers) in
        [("processes", listed(&inventory.processes)), ("threads", listed(&inventory.threads))]
    {
        if let Some(numbers) = numbers {
            row(what, numbers)?;
        }
    }
    for (key, count) in &inventory.label_keys {
        row("label", format!("{key} (on {count} samples)"))?;
    }
    for kind in &inventory.value_types {
        row("values", kind.clone())?;
    }
    Ok(())
}

/// How often a profiler looked that looks at all threads at once.
fn tick_rows(inventory: &Inventory, out: &mut impl Write) -> io::Result<()> {
    if let Some(numbers) = listed(&inventory.interpreters) {
        row(out, "interpreters", numbers)?;
    }
    let achieved = achieved_per_s(inventory).map(|rate| format!("; {rate:.1} a second")).unwrap_or_default();
    let asked = asked_per_s(inventory).map(|rate| format!(", asked for {rate:.1}")).unwrap_or_default();
    match inventory.ticks.count() {
        Some(count) => row(out, "ticks", format!("{count}{achieved}{asked}")),
        None => row(out, "ticks", format!("more than {}{asked}", Ticks::MAX)),
    }
}

/// How many ticks a second there were between the first and the last.
fn achieved_per_s(inventory: &Inventory) -> Option<f64> {
    let (first, last) = inventory.time_ns?;
    let gaps = inventory.ticks.count()?.checked_sub(1).filter(|&gaps| gaps > 0)?;
    #[expect(clippy::cast_precision_loss, reason = "printed with one digit")]
    let rate = gaps as f64 / (i128::from(last) - i128::from(first)) as f64 * 1e9;
    Some(rate)
}

/// How many ticks a second the profiler was asked for, where there is one answer.
fn asked_per_s(inventory: &Inventory) -> Option<f64> {
    let [only] = &inventory.first_segments[..] else { return None };
    #[expect(clippy::cast_precision_loss, reason = "printed with one digit")]
    only.period_ns.filter(|&ns| ns > 0).map(|ns| 1e9 / ns as f64)
}

/// What the records are, and how well they are compressed.
fn record_rows(records: &RecordCounts, out: &mut impl Write) -> io::Result<()> {
    if !records.by_type.is_empty() {
        let counts: Vec<_> = records.by_type.iter().map(|(name, count)| format!("{name} {count}")).collect();
        row(out, "records", counts.join(", "))?;
    }
    match (records.compressed_bytes, ratio(records)) {
        (Some((stored, decompressed)), Some(ratio)) => {
            row(out, "compression", format!("{ratio:.2} times: {decompressed} bytes of samples in {stored}"))
        }
        _ => Ok(()),
    }
}

/// How many times the records are longer than what they take in the file.
fn ratio(records: &RecordCounts) -> Option<f64> {
    let (stored, decompressed) = records.compressed_bytes.filter(|&(stored, _)| stored > 0)?;
    #[expect(clippy::cast_precision_loss, reason = "printed with two digits")]
    let ratio = decompressed as f64 / stored as f64;
    Some(ratio)
}

/// What the events of a trace are.
fn event_rows(inventory: &Inventory, out: &mut impl Write) -> io::Result<()> {
    row(out, "events", inventory.events)?;
    row(
        out,
        "schemas",
        format_args!("{} distinct, of {} names", inventory.shapes, inventory.event_names.len()),
    )?;
    row(out, "batches", inventory.segments)?;
    if let Some((first, last)) = inventory.event_time_ns {
        row(out, "time span", seconds(i128::from(last) - i128::from(first)))?;
    }
    let mut names: Vec<_> = inventory.event_names.iter().collect();
    names.sort_by_key(|(_, count)| Reverse(**count));
    for (name, count) in names.iter().take(SHOWN_NAMES) {
        row(out, "event", format_args!("{name} {count}"))?;
    }
    if names.len() > SHOWN_NAMES {
        row(out, "event", format_args!("{SHOWN_NAMES} of {} names shown; --json for all", names.len()))?;
    }
    Ok(())
}

/// How many names of events are listed.
const SHOWN_NAMES: usize = 40;

fn per_record(bytes: u64, inventory: &Inventory) -> String {
    let (records, what) = match inventory {
        Inventory { samples: 0, events: 0, .. } => return String::new(),
        Inventory { samples: 0, events, .. } => (*events, "an event"),
        Inventory { samples, .. } => (*samples, "a sample"),
    };
    #[expect(clippy::cast_precision_loss, reason = "printed with two digits")]
    let ratio = bytes as f64 / records as f64;
    format!(", {ratio:.2} {what}")
}

fn stacks(inventory: &Inventory) -> String {
    let Inventory { stacks, deepest, depth_sum, samples, empty_stacks, .. } = inventory;
    let mean = depth_sum.checked_div(u128::from(*samples)).unwrap_or(0);
    let empty =
        if *empty_stacks > 0 { format!("; {empty_stacks} samples without a stack") } else { String::new() };
    format!("{stacks} distinct with their callers; depth {mean} on average, {deepest} at most{empty}")
}

fn segments(inventory: &Inventory) -> String {
    let timed = inventory.first_segments.iter().filter(|segment| segment.has_times).count();
    let times = match timed {
        0 => "without timestamps",
        all if all == inventory.first_segments.len() => "with timestamps",
        _ => "some with timestamps",
    };
    format!("{} {times}", inventory.segments)
}

fn periods(inventory: &Inventory) -> String {
    let mut periods: Vec<_> =
        inventory.first_segments.iter().filter_map(|segment| segment.period_ns).collect();
    periods.sort_unstable();
    periods.dedup();
    let texts: Vec<_> = periods.iter().map(|ns| format!("{} us", ns / 1000)).collect();
    if texts.is_empty() { "unknown".to_owned() } else { texts.join(", ") }
}

/// What samples measure, where that is not wall time.
fn modes(inventory: &Inventory) -> Option<String> {
    let mut names: Vec<_> = inventory.first_segments.iter().map(|segment| segment.mode.name()).collect();
    names.sort_unstable();
    names.dedup();
    (names.iter().any(|&name| name != Mode::Wall.name())).then(|| names.join(", "))
}

fn seconds(ns: i128) -> String {
    format!("{}.{:06} s", ns / 1_000_000_000, ns % 1_000_000_000 / 1000)
}

/// How many numbers, and the first of them.
fn listed<T: ToString>(numbers: &Numbers<T>) -> Option<String> {
    const SHOWN: usize = 8;
    let count = numbers.values.len();
    let first: Vec<_> = numbers.values.iter().take(SHOWN).map(ToString::to_string).collect();
    let rest = if count > SHOWN || numbers.more { ", ..." } else { "" };
    let least = if numbers.more { "more than " } else { "" };
    (count > 0).then(|| format!("{least}{count}: {}{rest}", first.join(", ")))
}

/// A row a segment, where there are several.
fn segment_rows(inventory: &Inventory, out: &mut impl Write) -> io::Result<()> {
    if inventory.segments < 2 {
        return Ok(());
    }
    let counted = if inventory.samples == 0 && inventory.events > 0 { "events" } else { "samples" };
    writeln!(out, "\n{:>7} {:>12} {counted:>12} {:>10}  metadata", "segment", "offset", "period us")?;
    for segment in &inventory.first_segments {
        let SegmentFacts { index, offset, period_ns, samples, events, metadata, .. } = segment;
        let count = if counted == "events" { events } else { samples };
        let unknown = || "-".to_owned();
        let offset = offset.map_or_else(unknown, |offset| format!("{offset:#x}"));
        let period = period_ns.map_or_else(unknown, |ns| (ns / 1000).to_string());
        let pairs: Vec<_> = metadata.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let pairs = printable(pairs.join(" ").as_bytes());
        let line = format!("{index:>7} {offset:>12} {count:>12} {period:>10}  {pairs}");
        writeln!(out, "{}", line.trim_end())?;
    }
    let left = inventory.segments.saturating_sub(inventory.first_segments.len() as u64);
    if left > 0 {
        writeln!(
            out,
            "{} of {} segments shown; borehole dump lists all",
            inventory.first_segments.len(),
            inventory.segments
        )?;
    }
    Ok(())
}

fn object(info: &Info) -> Value {
    let Info { name, format, size_bytes, inventory, recovery, records } = info;
    let records: Map<String, Value> =
        records.by_type.iter().map(|(&name, &count)| (name.to_owned(), json!(count))).collect();
    let ticks = (*format == Format::Tachyon).then(|| inventory.ticks.count()).flatten();
    let compressed = info.records.compressed_bytes;
    let warning = |warning: &Warning| {
        let Warning { offset, message, lost_bytes, saved_samples } = warning;
        json!({"offset": offset, "message": message, "lost_bytes": lost_bytes, "saved_samples": saved_samples})
    };
    json!({
        "schema_version": 1,
        "file": name,
        "format": format.name(),
        "size_bytes": size_bytes,
        "samples": inventory.samples,
        "sample_records": inventory.records,
        "events": inventory.events,
        "event_names": inventory.event_names,
        "schemas": inventory.shapes,
        "event_time_ns": inventory.event_time_ns,
        "empty_stacks": inventory.empty_stacks,
        "segments": inventory.segments,
        "first_segments": inventory.first_segments.iter().map(segment_object).collect::<Vec<_>>(),
        "stacks": inventory.stacks,
        "deepest": inventory.deepest,
        "frames": inventory.frames,
        "strings": inventory.strings,
        "processes": inventory.processes.values,
        "threads": inventory.threads.values,
        "interpreters": inventory.interpreters.values,
        "label_keys": inventory.label_keys,
        "label_sets": inventory.label_sets,
        "value_types": inventory.value_types,
        "time_ns": inventory.time_ns,
        "ticks": ticks,
        "compressed_bytes": compressed.map(|(stored, _)| stored),
        "decompressed_bytes": compressed.map(|(_, decompressed)| decompressed),
        "records": records,
        "lost_bytes": recovery.lost_bytes,
        "warnings": recovery.warnings.iter().map(warning).collect::<Vec<_>>(),
        "more_warnings": recovery.more_warnings,
        "notes": recovery.notes.iter().map(warning).collect::<Vec<_>>(),
    })
}

fn segment_object(segment: &SegmentFacts) -> Value {
    json!({
        "index": segment.index,
        "offset": segment.offset,
        "period_ns": segment.period_ns,
        "mode": segment.mode.name(),
        "has_times": segment.has_times,
        "pid": segment.process,
        "metadata": segment.metadata,
        "samples": segment.samples,
        "events": segment.events,
    })
}
