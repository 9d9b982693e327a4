//! `borehole formats`.

use std::io::{self, Write};

use borehole::{Facts, Format};
use borehole_text::{TextColumn, TextTable};
use clap::Args;
use serde_json::json;

use crate::exit::Exit;
use crate::stdout::stdout_error;

/// The arguments of `borehole formats`.
#[derive(Args, Clone, Debug)]
pub(crate) struct FormatsArgs {
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) fn run(args: &FormatsArgs) -> anyhow::Result<Exit> {
    let mut out = io::stdout().lock();
    let written = if args.json {
        let formats: Vec<_> = Format::ALL.iter().map(|&format| object(format)).collect();
        writeln!(out, "{}", json!({"schema_version": 1, "formats": formats}))
    } else {
        table(&mut out)
    };
    written.map_err(stdout_error)?;
    Ok(Exit::Done)
}

fn table(out: &mut impl Write) -> io::Result<()> {
    let titles = ["format", "read", "write", "extension", "description"];
    let mut table = TextTable::new(titles.map(TextColumn::name));
    for &format in Format::ALL {
        let Facts { name, extensions, description, .. } = format.facts();
        let [read, write] = [format.readable(), format.writable()].map(|can| if can { "yes" } else { "-" });
        let ending = extensions.first().map_or_else(String::new, |ending| format!(".{ending}"));
        table.row([name, read, write, &ending, description]);
    }
    write!(out, "{table}")?;
    writeln!(
        out,
        "\nInputs may be compressed with gzip or zstd, and in zip or tar archives, whatever their name. Outputs whose name ends in .gz are compressed."
    )?;
    writeln!(out, "borehole formats --json lists all extensions and names.")
}

fn object(format: Format) -> serde_json::Value {
    let facts = format.facts();
    json!({
        "name": facts.name,
        "aliases": facts.aliases,
        "extensions": facts.extensions,
        "description": facts.description,
        "read": format.readable(),
        "write": format.writable(),
    })
}
