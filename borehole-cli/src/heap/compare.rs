//! `borehole heap compare`: what changed between heaps.

use std::path::PathBuf;
use std::str::FromStr;

use borehole::Existing;
use borehole::heap::compare::{Change, Comparison, HolderChange, Series, compare};
use borehole::heap::retention::Follow;
use borehole::heap::{Graph, HeapFile, Opened};
use clap::Args;
use serde_json::{Value, json};

use super::file::Memory;
use super::output::write_text;
use crate::cell::{Anchor, bytes, crop, printable};
use crate::exit::Exit;
use crate::messages::say;

/// `borehole heap compare`.
#[derive(Args, Clone, Debug)]
pub(crate) struct CompareArgs {
    /// Heaps, the oldest first; one database may hold two
    #[arg(value_name = "FILE", required = true)]
    pub(crate) inputs: Vec<PathBuf>,

    /// The run of the first, of a database; otherwise the last
    #[arg(long, value_name = "RUN")]
    pub(crate) run_id_baseline: Option<i64>,

    /// The run of the last, of a database; otherwise the last
    #[arg(long, value_name = "RUN")]
    pub(crate) run_id_target: Option<i64>,

    /// Leave out what changed by less than so many percent
    #[arg(long, value_name = "PERCENT", default_value_t = 0.0)]
    pub(crate) threshold: f64,

    /// Show so many rows of each table; 0 shows all
    #[arg(long, value_name = "COUNT", default_value_t = 20)]
    pub(crate) limit: usize,

    /// Exit with 1 if memory grew by more than this: 64M, 500K, 10%
    #[arg(long, value_name = "SIZE")]
    pub(crate) fail_over: Option<Allowance>,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,

    /// Indent JSON
    #[arg(long, requires = "json")]
    pub(crate) pretty: bool,

    /// The file to write instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    /// Replace an existing file
    #[arg(long)]
    pub(crate) force: bool,

    #[command(flatten)]
    pub(crate) memory: Memory,
}

/// By how much memory may grow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Allowance {
    Bytes(u64),
    Percent(f64),
}

impl FromStr for Allowance {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = || format!("expected bytes such as 64M, or a share such as 10%, found {text}");
        if let Some(percent) = text.strip_suffix('%') {
            let percent =
                percent.parse::<f64>().ok().filter(|percent| percent.is_finite() && *percent >= 0.0);
            return percent.map(Self::Percent).ok_or_else(expected);
        }
        let (digits, unit) =
            match text.trim_end_matches(['B', 'b']).strip_suffix(['K', 'k', 'M', 'm', 'G', 'g']) {
                Some(digits) => (digits, text[digits.len()..].to_ascii_uppercase()),
                None => (text.trim_end_matches(['B', 'b']), String::new()),
            };
        let shift = match unit.chars().next() {
            Some('K') => 10,
            Some('M') => 20,
            Some('G') => 30,
            _ => 0,
        };
        let bytes = digits.parse::<u64>().ok().and_then(|count| count.checked_mul(1 << shift));
        bytes.map(Self::Bytes).ok_or_else(expected)
    }
}

impl Allowance {
    fn is_crossed(self, comparison: &Comparison) -> bool {
        let (Some(first), Some(last)) = (comparison.heaps.first(), comparison.heaps.last()) else {
            return false;
        };
        let grown = last.bytes.saturating_sub(first.bytes);
        match self {
            Self::Bytes(bytes) => grown > bytes,
            Self::Percent(percent) => percent_of(grown.try_into().unwrap_or(i64::MAX), first.bytes)
                .is_some_and(|grown| grown > percent),
        }
    }
}

impl CompareArgs {
    pub(crate) fn run(&self) -> anyhow::Result<Exit> {
        let (exit, comparison) = self.compared()?;
        let text = match (self.json, self.pretty) {
            (true, true) => format!("{:#}\n", self.as_json(&comparison)),
            (true, false) => format!("{}\n", self.as_json(&comparison)),
            (false, _) => self.as_text(&comparison),
        };
        let existing = if self.force { Existing::Replace } else { Existing::Keep };
        write_text(&text, self.output.as_deref(), existing)?;
        if self.fail_over.is_some_and(|allowance| allowance.is_crossed(&comparison)) {
            say("memory grew by more than --fail-over allows");
            return Ok(Exit::Crossed);
        }
        Ok(exit)
    }

    fn compared(&self) -> anyhow::Result<(Exit, Comparison)> {
        let again = (self.inputs.len() == 1).then(|| self.inputs[0].clone());
        let paths: Vec<PathBuf> = self.inputs.iter().cloned().chain(again).collect();
        let files: Result<Vec<HeapFile>, _> = paths.iter().map(|path| HeapFile::open(path)).collect();
        let files = files?;
        let mut opened: Vec<Opened<'_>> = Vec::with_capacity(files.len());
        for (position, file) in files.iter().enumerate() {
            opened.push(self.memory_of(position, files.len()).graph(file)?);
        }
        let graphs: Vec<&dyn Graph> = opened.iter().map(|opened| &*opened.graph).collect();
        let damaged = opened.iter().find(|opened| opened.recovery.lost_bytes > 0).or(opened.first());
        let exit = damaged.map_or(Exit::Done, |opened| Exit::after(&opened.recovery));
        Ok((exit, compare(&graphs, Follow::default())))
    }

    fn memory_of(&self, position: usize, count: usize) -> Memory {
        let run = match position {
            0 => self.run_id_baseline,
            last if last + 1 == count => self.run_id_target,
            _ => None,
        };
        Memory { run_id: run.or(self.memory.run_id), ..self.memory.clone() }
    }

    /// Whether a change is large enough to be shown.
    fn is_shown(&self, growth: i64, before: Option<u64>) -> bool {
        growth != 0
            && percent_of(growth, before.unwrap_or(0)).is_none_or(|percent| percent.abs() >= self.threshold)
    }

    fn shown<'r, T>(&self, rows: impl Iterator<Item = &'r T>) -> (Vec<&'r T>, usize) {
        let rows: Vec<&T> = rows.collect();
        let of = rows.len();
        let limit = if self.limit == 0 { of } else { self.limit };
        (rows.into_iter().take(limit).collect(), of)
    }

    fn holders<'c>(&self, rows: &'c [HolderChange]) -> impl Iterator<Item = &'c HolderChange> {
        rows.iter().filter(|row| self.is_shown(row.growth, row.retained.first().copied().flatten()))
    }

    fn changes<'c>(&self, rows: &'c [Change]) -> impl Iterator<Item = &'c Change> {
        rows.iter().filter(|row| {
            let counts_differ = row.counts.first() != row.counts.last();
            counts_differ && row.growth() == 0 || self.is_shown(row.growth(), row.bytes.first().copied())
        })
    }

    fn as_text(&self, comparison: &Comparison) -> String {
        let mut text = String::new();
        for (position, heap) in comparison.heaps.iter().enumerate() {
            let name = if position == 0 { "base" } else { "then" };
            text += &format!("{name}  {:>10}  {} nodes  {}\n", bytes(heap.bytes), heap.nodes, heap.created);
        }
        if let (Some(first), Some(last)) = (comparison.heaps.first(), comparison.heaps.last()) {
            let grown = last.bytes.cast_signed().saturating_sub(first.bytes.cast_signed());
            text += &format!("grew by {}{}\n", signed(grown), in_percent(percent_of(grown, first.bytes)));
        }
        text += &self.holder_table("what grew or shrank, beyond its parts", &comparison.holders);
        text += &self.holder_table("new", &comparison.added);
        text += &self.holder_table("gone", &comparison.removed);
        text += &self.change_table("classes", &comparison.classes);
        text + &self.change_table("types", &comparison.types)
    }

    fn holder_table(&self, title: &str, rows: &[HolderChange]) -> String {
        let (shown, of) = self.shown(self.holders(rows));
        if shown.is_empty() {
            return String::new();
        }
        let mut text = format!("\n{title}\n{:>12} {:>10}  path\n", "change", "retains");
        for row in &shown {
            let retained = row.retained.iter().rev().find_map(|&bytes| bytes).unwrap_or(0);
            let path = crop(&printable(&row.path), PATH_COLUMNS, Anchor::Right);
            let steady = if row.is_steady && row.retained.len() > 2 { "  steady" } else { "" };
            text += &format!(
                "{:>12} {:>10}  {path}{}{steady}\n",
                signed(row.growth),
                bytes(retained),
                counted(row)
            );
        }
        text + &cut(shown.len(), of)
    }

    fn change_table(&self, title: &str, rows: &[Change]) -> String {
        let (shown, of) = self.shown(self.changes(rows));
        if shown.is_empty() {
            return String::new();
        }
        let mut text = format!("\n{title}\n{:>12} {:>10} {:>10}  name\n", "bytes", "count was", "count is");
        for row in &shown {
            let (before, now) = (row.counts.first().copied(), row.counts.last().copied());
            let name = crop(&printable(&row.name), PATH_COLUMNS, Anchor::Right);
            let steady = if row.is_steady && row.bytes.len() > 2 { "  steady" } else { "" };
            text += &format!(
                "{:>12} {:>10} {:>10}  {name}{steady}\n",
                signed(row.growth()),
                before.unwrap_or(0),
                now.unwrap_or(0)
            );
        }
        text + &cut(shown.len(), of)
    }

    /// The keys of reli's comparison, and beside them what it does not have: `heaps`, `holders`, and `values` for series.
    fn as_json(&self, comparison: &Comparison) -> Value {
        let heap = |heap: &borehole::heap::compare::Compared| json!({"captured_at": heap.created, "node_count": heap.nodes, "bytes": heap.bytes});
        let list = |rows: &[HolderChange]| -> Vec<Value> {
            self.shown(self.holders(rows)).0.into_iter().map(holder_json).collect()
        };
        let classes: Vec<&Change> = self.changes(&comparison.classes).collect();
        let of_classes = |is: &dyn Fn(u64, u64) -> bool| -> Vec<Value> {
            let ends = |row: &Change| {
                (row.counts.first().copied().unwrap_or(0), row.counts.last().copied().unwrap_or(0))
            };
            classes.iter().filter(|row| is(ends(row).0, ends(row).1)).map(|row| change_json(row)).collect()
        };
        json!({
            "schema_version": 1,
            "baseline": comparison.heaps.first().map(heap),
            "target": comparison.heaps.last().map(heap),
            "heaps": comparison.heaps.iter().map(heap).collect::<Vec<_>>(),
            "same_process": comparison.same_process,
            "summary_deltas": comparison.metrics.iter().filter_map(|series| self.metric_json(series)).collect::<Vec<_>>(),
            "type_deltas": self.changes(&comparison.types).map(change_json).collect::<Vec<_>>(),
            "class_deltas": {
                "changed": of_classes(&|before, now| before > 0 && now > 0),
                "added": of_classes(&|before, _| before == 0),
                "removed": of_classes(&|_, now| now == 0),
            },
            "holder_deltas": {
                "changed": list(&comparison.holders),
                "added": list(&comparison.added),
                "removed": list(&comparison.removed),
                "changed_count": comparison.holders.len(),
                "added_count": comparison.added.len(),
                "removed_count": comparison.removed.len(),
            },
        })
    }

    fn metric_json(&self, series: &Series) -> Option<Value> {
        let (before, now) =
            (series.values.first().copied().flatten(), series.values.last().copied().flatten());
        let delta = now.unwrap_or(0.0) - before.unwrap_or(0.0);
        let percent = before.filter(|before| *before != 0.0).map(|before| 100.0 * delta / before.abs());
        let is_shown = delta != 0.0 && percent.is_none_or(|percent| percent.abs() >= self.threshold);
        is_shown.then(|| {
            json!({"metric": series.name, "baseline": before, "target": now, "delta": delta,
                   "delta_percent": percent, "values": series.values})
        })
    }
}

/// As wide as a path may be shown.
const PATH_COLUMNS: usize = 80;

fn change_json(row: &Change) -> Value {
    json!({
        "name": String::from_utf8_lossy(&row.name),
        "counts": row.counts,
        "bytes": row.bytes,
        "delta": row.growth(),
        "delta_percent": percent_of(row.growth(), row.bytes.first().copied().unwrap_or(0)),
        "steady": row.is_steady,
    })
}

fn holder_json(row: &HolderChange) -> Value {
    json!({
        "path": String::from_utf8_lossy(&row.path),
        "type": String::from_utf8_lossy(&row.node_type),
        "nodes": row.nodes.iter().map(|node| node.map(|node| format!("#{}", node.0))).collect::<Vec<_>>(),
        "retained": row.retained,
        "counts": row.counts,
        "growth": row.growth,
        "steady": row.is_steady,
    })
}

/// How its number of elements changed.
fn counted(row: &HolderChange) -> String {
    match (row.counts.first().copied().flatten(), row.counts.last().copied().flatten()) {
        (Some(before), Some(now)) if before != now => format!("  ({before} -> {now} elements)"),
        (None, Some(now)) if row.retained.first().is_some_and(Option::is_none) => {
            format!("  ({now} elements)")
        }
        _ => String::new(),
    }
}

fn cut(shown: usize, of: usize) -> String {
    if shown < of { format!("{shown} of {of} shown; --limit 0 for all\n") } else { String::new() }
}

fn signed(growth: i64) -> String {
    let sign = if growth < 0 { '-' } else { '+' };
    format!("{sign}{}", bytes(growth.unsigned_abs()))
}

#[expect(clippy::cast_precision_loss, reason = "a share is shown in a few digits")]
fn percent_of(part: i64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| 100.0 * part as f64 / whole as f64)
}

fn in_percent(percent: Option<f64>) -> String {
    percent.map(|percent| format!(" ({percent:+.1} %)")).unwrap_or_default()
}
