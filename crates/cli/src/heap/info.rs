//! `borehole heap info`: the format and the contents of a heap.

use std::path::PathBuf;

use borehole::heap::{HeapFormat, HeapInfo, MemoryTotal, info};
use borehole_text::{KeptEnd, TextTable, bytes, grouped, printable};
use clap::Args;
use serde::Serialize;

use super::file::HeapInputArgs;
use super::output::document;
use super::password;
use crate::cell::sized;
use crate::exit::Exit;
use crate::stdout::put;
use crate::table::titled;
use crate::values::RowLimit;

/// `borehole heap info`.
#[derive(Args, Clone, Debug)]
pub(crate) struct HeapInfoArgs {
    /// A graph, a database or the address of one, a dump or a core file
    #[arg(value_name = "FILE")]
    input: PathBuf,

    /// Print JSON
    #[arg(long)]
    json: bool,

    /// Rows of each table; 0 for all
    #[arg(long, visible_alias = "top", value_name = "COUNT", default_value_t = RowLimit::new(20))]
    limit: RowLimit,

    #[command(flatten)]
    memory: HeapInputArgs,
}

impl HeapInfoArgs {
    pub(super) fn run(&self) -> anyhow::Result<Exit> {
        let file = password::open(&self.input, self.memory.waits)?;
        let opened = self.memory.graph(&file)?;
        let info = info(&&*opened.graph);
        let text = if self.json {
            as_json(&info, file.format())?
        } else {
            as_text(&info, file.format(), self.limit)
        };
        put(&text, self.json)?;
        Ok(Exit::after(&opened.recovery))
    }
}

/// The numbers of nodes and other parts, and of references by strength.
fn counts(info: &HeapInfo) -> [(&'static str, u64); 9] {
    [
        ("nodes", info.counts.nodes as u64),
        ("edges", info.counts.edges as u64),
        ("locations", info.counts.locations as u64),
        ("attributes", info.counts.attributes as u64),
        ("strong", info.references.strong),
        ("weak", info.references.weak),
        ("structural", info.references.structural),
        ("shared", info.references.shared),
        ("duplicates", info.duplicates),
    ]
}

fn as_text(info: &HeapInfo, format: HeapFormat, limit: RowLimit) -> String {
    let mut facts = sized(TextTable::facts());
    facts.row(["format", format.name()]);
    if !info.created.is_empty() {
        facts.row(["created", &info.created]);
    }
    for (what, count) in counts(info) {
        facts.row([what, &grouped(count)]);
    }
    let warning = info.contradiction.as_ref();
    let warning =
        warning.map_or_else(String::new, |text| format!("WARNING  {}\n\n", printable(text.as_bytes())));
    let mut summary = sized(TextTable::facts());
    info.summary.iter().for_each(|(key, value)| summary.row([key, value]));
    let mut text = format!("{warning}{facts}\n{summary}");
    text += &ranking("memory by region", &info.regions, limit);
    text += &ranking("memory by type", &info.everything.location_types, limit);
    text + &ranking("memory of objects by class", &info.everything.classes, limit)
}

fn as_json(info: &HeapInfo, format: HeapFormat) -> anyhow::Result<String> {
    /// The summary of a graph, and the format of its file.
    #[derive(Serialize)]
    struct FileInfo<'a> {
        format: &'static str,
        #[serde(flatten)]
        info: &'a HeapInfo,
    }
    document(FileInfo { format: format.name(), info }, false)
}

/// A table of the largest totals.
fn ranking(title: &str, totals: &[MemoryTotal], limit: RowLimit) -> String {
    let shown = limit.count().min(totals.len());
    let rows = totals[..shown].iter().map(|total| {
        let name = if total.name.is_empty() { "(other)".to_owned() } else { printable(&total.name) };
        [bytes(total.memory_usage), grouped(total.count), name]
    });
    let table = sized(TextTable::of(["size", "count", "name"], &rows.collect::<Vec<_>>(), KeptEnd::Left));
    titled(title, &table, shown, totals.len())
}
