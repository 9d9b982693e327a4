//! `borehole info`.

use std::cmp::Reverse;
use std::fmt::Display;
use std::io::{self, Write};
use std::path::PathBuf;

use borehole::model::{LaneId, Mode};
use borehole::{Format, RecordCounts, Recovery, Source, Warning, count_records, import_all};
use borehole_analysis::{DistinctNumbers, DistinctTimes, Inventory, SegmentFacts};
use borehole_text::{TextColumn, TextTable, counted, duration, grouped};
use clap::Args;
use serde::Serialize;
use serde_json::Value;

use crate::cell::sized;
use crate::exit::Exit;
use crate::inputs::{self, ReadArgs};
use crate::interrupt::Interruptible;
use crate::messages;
use crate::opening::InputPlace;
use crate::stdout::{data, stdout_error};

/// The arguments of `borehole info`.
#[derive(Args, Clone, Debug)]
#[command(mut_arg("lenient", |arg| arg.hide(true)))]
pub(crate) struct InfoArgs {
    /// Files to inspect; `-`, or none, is standard input
    #[arg(value_name = "INPUT")]
    paths: Vec<PathBuf>,

    #[command(flatten)]
    reading: ReadArgs,

    /// Print one JSON object per file
    #[arg(long)]
    json: bool,
}

/// The facts about one file.
struct FileInfo {
    name: String,
    format: Format,
    size_bytes: Option<u64>,
    inventory: Inventory,
    recovery: Recovery,
    /// Empty for formats without records, and for inputs that cannot be read twice.
    records: RecordCounts,
}

/// Inspects every input. The exit code is that of the worst one.
pub(crate) fn run(args: &InfoArgs) -> anyhow::Result<Exit> {
    let mut out = data();
    let mut worst = Exit::Done;
    // Damage is a fact about a file too.
    let reading = ReadArgs { lenient: true, ..args.reading.clone() };
    let mut index = 0;
    for path in inputs::names(&args.paths) {
        let found = match reading.find(path) {
            Ok(found) => found,
            Err(error) => {
                worst = worst.and(messages::failure(&error));
                continue;
            }
        };
        worst = worst.and(Exit::after(&found.report()));
        for place in found.places {
            let exit = match inspect(place, &reading) {
                Ok(info) => {
                    print(&info, args.json, index, &mut out).map_err(stdout_error)?;
                    index += 1;
                    messages::warnings(&info.name, &info.recovery);
                    Exit::after(&info.recovery)
                }
                Err(error) => messages::failure(&error),
            };
            worst = worst.and(exit);
        }
    }
    Ok(worst)
}

fn print(info: &FileInfo, json: bool, index: usize, out: &mut impl Write) -> io::Result<()> {
    if json {
        return writeln!(out, "{}", object(info)?);
    }
    if index > 0 {
        writeln!(out)?;
    }
    write!(out, "{}", text(info))
}

fn inspect(place: InputPlace, reading: &ReadArgs) -> anyhow::Result<FileInfo> {
    let again = place.again();
    let input = reading.open_at(place)?;
    let (name, format) = (input.name().to_owned(), input.format());
    let mut inventory = Inventory::default();
    let recovery = import_all([input], &mut Interruptible(&mut inventory))?;
    let size_bytes = again.as_ref().and_then(Source::size_bytes);
    let records = match again {
        Some(source) => count_records(format, source),
        None => RecordCounts::default(),
    };
    Ok(FileInfo { name, format, size_bytes, inventory, recovery, records })
}

fn text(info: &FileInfo) -> String {
    let FileInfo { name, format, size_bytes, inventory, records, .. } = info;
    let columns = [TextColumn::name("").at_least(KEY_COLUMNS), TextColumn::name("")];
    let mut facts = FileFacts(sized(TextTable::new(columns)));
    facts.row("file", name);
    facts.row("format", format_args!("{} ({})", format.name(), format.describe()));
    if let Some(bytes) = size_bytes {
        facts.row("size", format!("{} bytes{}", grouped(*bytes), per_record(*bytes, inventory)));
    }
    if inventory.events > 0 || *format == Format::Trc {
        facts.events(inventory);
    }
    if inventory.samples > 0 || *format != Format::Trc {
        facts.samples(inventory);
    }
    if *format == Format::Tachyon {
        facts.ticks(inventory);
    }
    facts.records(records);
    if let [only] = &inventory.first_segments[..] {
        for (key, value) in &only.metadata {
            facts.row("metadata", format_args!("{key}={value}"));
        }
    }
    facts.0.to_string() + &segment_table(inventory)
}

/// The columns of keys, so that the outputs for several files line up.
const KEY_COLUMNS: usize = 13;

/// The facts about a file. Text of the file is escaped, so that it can neither control the terminal nor add rows.
struct FileFacts(TextTable);

impl FileFacts {
    fn row(&mut self, key: &str, value: impl Display) {
        self.0.row([key, &value.to_string()]);
    }

    /// The rows about samples.
    fn samples(&mut self, inventory: &Inventory) {
        self.row("samples", format!("{} in {} runs", grouped(inventory.samples), grouped(inventory.records)));
        self.row("stacks", stacks(inventory));
        let [frames, strings] = [inventory.frames, inventory.strings].map(|count| grouped(count as u64));
        self.row("frames", format!("{frames} distinct; {strings} strings"));
        self.row("segments", segments(inventory));
        self.row("period", periods(inventory));
        if let Some(modes) = modes(inventory) {
            self.row("mode", modes);
        }
        if let Some((first, last)) = inventory.time_ns {
            self.row("time span", seconds(i128::from(last) - i128::from(first)));
        }
        let processes = listed(&inventory.processes, |&process| LaneId::of_process(process));
        let threads = listed(&inventory.threads, |&thread| LaneId::of(thread));
        for (what, numbers) in [("processes", processes), ("threads", threads)] {
            if let Some(numbers) = numbers {
                self.row(what, numbers);
            }
        }
        for (key, count) in &inventory.label_keys {
            self.row("label", format!("{key} (on {})", counted(*count, "sample")));
        }
        for kind in &inventory.value_types {
            self.row("values", kind.clone());
        }
    }

    /// The rows about ticks, for profilers that sample all threads at once.
    fn ticks(&mut self, inventory: &Inventory) {
        if let Some(numbers) = listed(&inventory.interpreters, |&interpreter| interpreter) {
            self.row("interpreters", numbers);
        }
        let achieved =
            achieved_per_s(inventory).map(|rate| format!(", {rate:.1} per second")).unwrap_or_default();
        let asked = asked_per_s(inventory).map(|rate| format!(" ({rate:.1} requested)")).unwrap_or_default();
        match inventory.ticks.count() {
            Some(count) => self.row("ticks", format!("{}{achieved}{asked}", grouped(count as u64))),
            None => self.row("ticks", format!("more than {}{asked}", grouped(DistinctTimes::MAX as u64))),
        }
    }

    /// The rows about records and their compression.
    fn records(&mut self, records: &RecordCounts) {
        if !records.by_type.is_empty() {
            let counts: Vec<_> =
                records.by_type.iter().map(|(name, count)| format!("{name} {}", grouped(*count))).collect();
            self.row("records", counts.join(", "));
        }
        if let (Some((stored, decompressed)), Some(ratio)) = (records.compressed_bytes, ratio(records)) {
            self.row(
                "compression",
                format!("{ratio:.2}:1, {} bytes of samples in {}", grouped(decompressed), grouped(stored)),
            );
        }
    }

    /// The rows about events.
    fn events(&mut self, inventory: &Inventory) {
        self.row("events", grouped(inventory.events));
        let names = inventory.event_names.len();
        self.row("schemas", format_args!("{} distinct, {names} names", inventory.shapes));
        self.row("batches", grouped(inventory.segments));
        if let Some((first, last)) = inventory.event_time_ns {
            self.row("time span", seconds(i128::from(last) - i128::from(first)));
        }
        let mut names: Vec<_> = inventory.event_names.iter().collect();
        names.sort_by_key(|(_, count)| Reverse(**count));
        for (name, count) in names.iter().take(SHOWN_NAMES) {
            self.row("event", format_args!("{name} {}", grouped(**count)));
        }
        if names.len() > SHOWN_NAMES {
            self.row("event", format_args!("{SHOWN_NAMES} of {} names shown; --json for all", names.len()));
        }
    }
}

/// Ticks per second between the first and the last tick.
fn achieved_per_s(inventory: &Inventory) -> Option<f64> {
    let (first, last) = inventory.time_ns?;
    let gaps = inventory.ticks.count()?.checked_sub(1).filter(|&gaps| gaps > 0)?;
    #[expect(clippy::cast_precision_loss, reason = "printed with one digit")]
    let rate = gaps as f64 / (i128::from(last) - i128::from(first)) as f64 * 1e9;
    Some(rate)
}

/// Ticks per second that the profiler was asked for; `None` if segments differ.
fn asked_per_s(inventory: &Inventory) -> Option<f64> {
    let [only] = &inventory.first_segments[..] else { return None };
    #[expect(clippy::cast_precision_loss, reason = "printed with one digit")]
    only.period_ns.filter(|&ns| ns > 0).map(|ns| 1e9 / ns as f64)
}

/// The size of the records divided by their compressed size.
fn ratio(records: &RecordCounts) -> Option<f64> {
    let (stored, decompressed) = records.compressed_bytes.filter(|&(stored, _)| stored > 0)?;
    #[expect(clippy::cast_precision_loss, reason = "printed with two digits")]
    let ratio = decompressed as f64 / stored as f64;
    Some(ratio)
}

/// How many event names are listed.
const SHOWN_NAMES: usize = 40;

fn per_record(bytes: u64, inventory: &Inventory) -> String {
    let (records, what) = match inventory {
        Inventory { samples: 0, events: 0, .. } => return String::new(),
        Inventory { samples: 0, events, .. } => (*events, "event"),
        Inventory { samples, .. } => (*samples, "sample"),
    };
    #[expect(clippy::cast_precision_loss, reason = "printed with two digits")]
    let ratio = bytes as f64 / records as f64;
    format!(", {ratio:.2} per {what}")
}

fn stacks(inventory: &Inventory) -> String {
    let Inventory { stacks, deepest, depth_sum, samples, empty_stacks, .. } = inventory;
    let mean = depth_sum.checked_div(u128::from(*samples)).unwrap_or(0);
    let empty = if *empty_stacks > 0 {
        format!("; {} without a stack", counted(*empty_stacks, "sample"))
    } else {
        String::new()
    };
    format!(
        "{} distinct, callers included; depth {mean} on average, {} at most{empty}",
        grouped(*stacks as u64),
        grouped(*deepest as u64)
    )
}

fn segments(inventory: &Inventory) -> String {
    let timed = inventory.first_segments.iter().filter(|segment| segment.has_times).count();
    let times = match timed {
        0 => "without timestamps",
        all if all == inventory.first_segments.len() => "with timestamps",
        _ => "some with timestamps",
    };
    format!("{} {times}", grouped(inventory.segments))
}

fn periods(inventory: &Inventory) -> String {
    let mut periods: Vec<_> =
        inventory.first_segments.iter().filter_map(|segment| segment.period_ns).collect();
    periods.sort_unstable();
    periods.dedup();
    let texts: Vec<_> = periods.iter().map(|&ns| duration(ns)).collect();
    if texts.is_empty() { "unknown".to_owned() } else { texts.join(", ") }
}

/// The measure of samples; `None` if that is wall time.
fn modes(inventory: &Inventory) -> Option<String> {
    let mut names: Vec<_> = inventory.first_segments.iter().map(|segment| segment.mode.name()).collect();
    names.sort_unstable();
    names.dedup();
    (names.iter().any(|&name| name != Mode::Wall.name())).then(|| names.join(", "))
}

fn seconds(ns: i128) -> String {
    format!("{}.{:06} s", ns / 1_000_000_000, ns % 1_000_000_000 / 1000)
}

/// The number of distinct numbers, and the first of them.
fn listed<T, I: Display>(numbers: &DistinctNumbers<T>, id: impl Fn(&T) -> I) -> Option<String> {
    const SHOWN: usize = 8;
    let count = numbers.values.len();
    let first: Vec<_> = numbers.values.iter().take(SHOWN).map(|number| id(number).to_string()).collect();
    let rest = if count > SHOWN || numbers.more { ", ..." } else { "" };
    let least = if numbers.more { "more than " } else { "" };
    (count > 0).then(|| format!("{least}{count}: {}{rest}", first.join(", ")))
}

/// A table with a row per segment, if there are several.
fn segment_table(inventory: &Inventory) -> String {
    if inventory.segments < 2 {
        return String::new();
    }
    let counts = if inventory.samples == 0 && inventory.events > 0 { "events" } else { "samples" };
    let numbers = ["segment", "offset", counts, "period"].map(TextColumn::number);
    let mut table = sized(TextTable::new(numbers.into_iter().chain([TextColumn::name("metadata")])));
    for segment in &inventory.first_segments {
        let SegmentFacts { index, offset, period_ns, samples, events, metadata, .. } = segment;
        let count = if counts == "events" { events } else { samples };
        let unknown = || "-".to_owned();
        let offset = offset.map_or_else(unknown, |offset| format!("{offset:#x}"));
        let period = period_ns.map_or_else(unknown, duration);
        let pairs: Vec<_> = metadata.iter().map(|(key, value)| format!("{key}={value}")).collect();
        table.row([index.to_string(), offset, grouped(*count), period, pairs.join(" ")]);
    }
    let (shown, all) = (inventory.first_segments.len() as u64, inventory.segments);
    let cut = (shown < all)
        .then(|| format!("  ({} of {} shown; borehole dump lists all)\n", grouped(shown), grouped(all)));
    format!("\n{table}{}", cut.unwrap_or_default())
}

/// Raised when a key changes its meaning or goes away.
const SCHEMA_VERSION: u32 = 1;

/// The JSON document of a file: the views as they serialize.
#[derive(Serialize)]
struct InfoDocument<'a> {
    schema_version: u32,
    file: &'a str,
    format: &'static str,
    size_bytes: Option<u64>,
    #[serde(flatten)]
    inventory: &'a Inventory,
    #[serde(flatten)]
    records: &'a RecordCounts,
    lost_bytes: u64,
    warnings: &'a [Warning],
    more_warnings: u64,
    notes: &'a [Warning],
}

fn object(info: &FileInfo) -> serde_json::Result<Value> {
    let FileInfo { name, format, size_bytes, inventory, recovery, records } = info;
    let mut object = serde_json::to_value(InfoDocument {
        schema_version: SCHEMA_VERSION,
        file: name,
        format: format.name(),
        size_bytes: *size_bytes,
        inventory,
        records,
        lost_bytes: recovery.lost_bytes,
        warnings: &recovery.warnings,
        more_warnings: recovery.more_warnings,
        notes: &recovery.notes,
    })?;
    if *format != Format::Tachyon {
        object["ticks"] = Value::Null;
    }
    Ok(object)
}
