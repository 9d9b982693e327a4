//! `borehole heap info`: what a file is and what is in it.

use std::io::{self, Write as _};
use std::path::PathBuf;

use borehole::heap::{HeapFormat, Info, Total, info};
use clap::Args;
use serde_json::{Map, Value, json};

use super::file::Memory;
use super::password;
use crate::cell::{bytes, pad, printable, width};
use crate::exit::Exit;
use crate::outputs::stdout_error;
use crate::values::{RowLimit, cut};

/// `borehole heap info`.
#[derive(Args, Clone, Debug)]
pub(crate) struct InfoArgs {
    /// A graph, a database or the address of one, a dump or a core file
    #[arg(value_name = "FILE")]
    input: PathBuf,

    /// Print JSON
    #[arg(long)]
    json: bool,

    /// Show so many types and classes; 0 shows all
    #[arg(long, visible_alias = "top", value_name = "COUNT", default_value_t = RowLimit::new(20))]
    limit: RowLimit,

    #[command(flatten)]
    memory: Memory,
}

impl InfoArgs {
    pub(super) fn run(&self) -> anyhow::Result<Exit> {
        let file = password::open(&self.input)?;
        let opened = self.memory.graph(&file)?;
        let info = info(&&*opened.graph);
        let text =
            if self.json { as_json(&info, file.format()) } else { as_text(&info, file.format(), self.limit) };
        io::stdout().write_all(text.as_bytes()).map_err(stdout_error)?;
        Ok(Exit::after(&opened.recovery))
    }
}

/// How much of each sort there is, and of references by their strength.
fn counts(info: &Info) -> [(&'static str, u64); 9] {
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

fn as_text(info: &Info, format: HeapFormat, limit: RowLimit) -> String {
    let mut text = format!("format      {}\n", format.name());
    if !info.created.is_empty() {
        text += &format!("created     {}\n", printable(info.created.as_bytes()));
    }
    for (what, count) in counts(info) {
        text += &format!("{what:<11} {count}\n");
    }
    text += "\n";
    let shown = |text: &String| printable(text.as_bytes());
    let summary: Vec<_> = info.summary.iter().map(|(key, value)| (shown(key), shown(value))).collect();
    let widest = summary.iter().map(|(key, _)| width(key)).max().unwrap_or(0);
    for (key, value) in &summary {
        text += &format!("{}  {value}\n", pad(key, widest));
    }
    text += &ranking("memory by region", &info.regions, limit);
    text += &ranking("memory by type", &info.everything.location_types, limit);
    text + &ranking("memory of objects by class", &info.everything.classes, limit)
}

fn as_json(info: &Info, format: HeapFormat) -> String {
    let list = |totals: &[Total]| -> Value {
        let object = |total: &Total| {
            let name = String::from_utf8_lossy(&total.name);
            json!({"name": name, "count": total.count, "memory_usage": total.memory_usage})
        };
        totals.iter().map(object).collect()
    };
    let summary: Map<_, _> =
        info.summary.iter().map(|(key, value)| (key.clone(), Value::from(value.as_str()))).collect();
    let counts: Map<_, _> =
        counts(info).into_iter().map(|(what, count)| (what.to_owned(), Value::from(count))).collect();
    let node_types: Map<_, _> =
        info.node_types.iter().map(|(name, count)| (name.clone(), Value::from(*count))).collect();
    let object = json!({
        "schema_version": 1,
        "format": format.name(),
        "created": info.created,
        "counts": counts,
        "summary": summary,
        "node_types": node_types,
        "regions": list(&info.regions),
        "location_types": list(&info.everything.location_types),
        "classes": list(&info.everything.classes),
        "overhead_bytes": info.overhead_bytes,
    });
    format!("{object}\n")
}

/// The largest of a list.
fn ranking(title: &str, totals: &[Total], limit: RowLimit) -> String {
    let shown = limit.count().min(totals.len());
    let mut text = format!("\n{title}\n{:>12} {:>10}  name\n", "size", "count");
    for total in &totals[..shown] {
        let name = printable(&total.name);
        let name = if name.is_empty() { "(elsewhere)" } else { &name };
        text += &format!("{:>12} {:>10}  {name}\n", bytes(total.memory_usage), total.count);
    }
    if let Some(cut) = cut(shown, totals.len()) {
        text += &format!("{cut}\n");
    }
    text
}
