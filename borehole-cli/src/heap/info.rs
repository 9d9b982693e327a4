//! `borehole heap info`: what a file is and what is in it.

use std::io::{self, Write as _};
use std::path::PathBuf;

use borehole::heap::{Graph, HeapFile, HeapFormat, Scope, Total, totals};
use clap::Args;
use serde_json::{Map, Value, json};

use super::file::Memory;
use super::live::bytes;
use crate::exit::Exit;
use crate::outputs::stdout_error;

/// `borehole heap info`.
#[derive(Args, Clone, Debug)]
pub(crate) struct InfoArgs {
    /// A graph, a dump or a core file
    #[arg(value_name = "FILE")]
    input: PathBuf,

    /// Print JSON
    #[arg(long)]
    json: bool,

    /// Show so many types and classes; 0 shows all
    #[arg(long, value_name = "COUNT", default_value_t = 20)]
    limit: usize,

    #[command(flatten)]
    memory: Memory,
}

impl InfoArgs {
    pub(super) fn run(&self) -> anyhow::Result<Exit> {
        let file = HeapFile::open(&self.input)?;
        let opened = self.memory.graph(&file)?;
        let facts = Facts::of(&*opened.graph, file.format());
        let text = if self.json { facts.json() } else { facts.text(self.limit) };
        io::stdout().write_all(text.as_bytes()).map_err(stdout_error)?;
        Ok(if opened.recovery.is_whole() { Exit::Done } else { Exit::Damaged })
    }
}

/// What is said of a graph.
struct Facts {
    format: HeapFormat,
    created: String,
    counts: [(&'static str, usize); 4],
    summary: Vec<(String, String)>,
    types: Vec<Total>,
    classes: Vec<Total>,
}

impl Facts {
    fn of(graph: &dyn Graph, format: HeapFormat) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let counts = graph.counts();
        let totals = totals(&graph, Scope::Everything);
        let pair = |&(key, value)| (text(graph.string(key)), text(graph.string(value)));
        Self {
            format,
            created: graph.created().to_owned(),
            counts: [
                ("nodes", counts.nodes),
                ("edges", counts.edges),
                ("locations", counts.locations),
                ("attributes", counts.attributes),
            ],
            summary: graph.summary().iter().map(pair).collect(),
            types: totals.location_types,
            classes: totals.classes,
        }
    }

    fn text(&self, limit: usize) -> String {
        let mut text = format!("format      {}\n", self.format.name());
        if !self.created.is_empty() {
            text += &format!("created     {}\n", self.created);
        }
        for (what, count) in self.counts {
            text += &format!("{what:<11} {count}\n");
        }
        text += "\n";
        let widest = self.summary.iter().map(|(key, _)| key.len()).max().unwrap_or(0);
        for (key, value) in &self.summary {
            text += &format!("{key:<widest$}  {value}\n");
        }
        text += &ranking("memory by type", &self.types, limit);
        text + &ranking("memory of objects by class", &self.classes, limit)
    }

    fn json(&self) -> String {
        let list = |totals: &[Total]| -> Value {
            let object = |total: &Total| {
                let name = String::from_utf8_lossy(&total.name);
                json!({"name": name, "count": total.count, "memory_usage": total.memory_usage})
            };
            totals.iter().map(object).collect()
        };
        let summary: Map<_, _> =
            self.summary.iter().map(|(key, value)| (key.clone(), Value::from(value.as_str()))).collect();
        let counts: Map<_, _> =
            self.counts.iter().map(|&(what, count)| (what.to_owned(), Value::from(count))).collect();
        let object = json!({
            "schema_version": 1,
            "format": self.format.name(),
            "created": self.created,
            "counts": counts,
            "summary": summary,
            "location_types": list(&self.types),
            "classes": list(&self.classes),
        });
        format!("{object}\n")
    }
}

/// The largest of a list.
fn ranking(title: &str, totals: &[Total], limit: usize) -> String {
    let shown = if limit == 0 { totals.len() } else { limit.min(totals.len()) };
    let mut text = format!("\n{title}\n{:>12} {:>10}  name\n", "size", "count");
    for total in &totals[..shown] {
        let name = String::from_utf8_lossy(&total.name).replace(char::is_control, " ");
        text += &format!("{:>12} {:>10}  {name}\n", bytes(total.memory_usage), total.count);
    }
    if shown < totals.len() {
        text += &format!("{shown} of {} shown; --limit 0 for all\n", totals.len());
    }
    text
}
