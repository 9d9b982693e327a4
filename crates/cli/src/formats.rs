//! `borehole formats`.

use std::io::{self, Write};

use borehole::{Facts, formats_table};
use clap::Args;
use serde_json::json;

use crate::exit::Exit;
use crate::outputs::stdout_error;

/// How to print the formats.
#[derive(Args, Clone, Debug)]
pub(crate) struct FormatsArgs {
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) fn run(args: &FormatsArgs) -> anyhow::Result<Exit> {
    let mut out = io::stdout().lock();
    let written = if args.json {
        let formats: Vec<_> = formats_table().iter().map(object).collect();
        writeln!(out, "{}", json!({"schema_version": 1, "formats": formats}))
    } else {
        table(&mut out)
    };
    written.map_err(stdout_error)?;
    Ok(Exit::Done)
}

fn table(out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "{:<11} {:<5} {:<5} {:<17} what it is", "format", "read", "write", "names end in")?;
    for facts in formats_table() {
        let Facts { name, extensions, description, .. } = facts;
        let [read, write] = [facts.readable, facts.writable].map(|can| if can { "yes" } else { "-" });
        let ending = extensions.first().map_or_else(String::new, |ending| format!(".{ending}"));
        writeln!(out, "{name:<11} {read:<5} {write:<5} {ending:<17} {description}")?;
    }
    writeln!(
        out,
        "\nAll are read compressed with gzip or zstd as well, whatever their name; written, with gzip, if .gz stands behind it."
    )?;
    writeln!(out, "More endings and names: borehole formats --json")
}

fn object(facts: &Facts) -> serde_json::Value {
    json!({
        "name": facts.name,
        "aliases": facts.aliases,
        "extensions": facts.extensions,
        "description": facts.description,
        "read": facts.readable,
        "write": facts.writable,
    })
}
