//! `borehole lake symbolize` and `upgrade`.

use borehole::FilledLine;
use borehole_query::{Lake, NamedCode, UnnamedCode};
use borehole_text::counted;
use clap::Args;

use super::open;
use crate::exit::Exit;
use crate::interrupt;
use crate::messages::{out, say};
use crate::symbolize::{LocalSymbols, SymbolArgs};

/// `borehole lake symbolize`.
#[derive(Args, Clone, Debug)]
pub(crate) struct LakeSymbolizeArgs {
    /// The lake
    #[arg(value_name = "LAKE")]
    lake: String,

    #[command(flatten)]
    symbols: SymbolArgs,
}

/// `borehole lake upgrade`.
#[derive(Args, Clone, Debug)]
pub(crate) struct UpgradeArgs {
    /// The lake
    #[arg(value_name = "LAKE")]
    lake: String,
}

pub(crate) fn run(args: &LakeSymbolizeArgs) -> anyhow::Result<Exit> {
    interrupt::heed();
    let lake = open(&args.lake)?;
    let mut symbols = LocalSymbols::new(&args.symbols);
    let mut lines = Vec::new();
    let done = lake.symbolize(&mut |code: &UnnamedCode| {
        lines.clear();
        let (path, build_id) = (code.path.as_bytes(), Some(code.build_id.as_bytes()));
        match symbols.functions(path, build_id, code.file_offset, &mut lines) {
            true => lines.drain(..).map(named).collect(),
            false => Vec::new(),
        }
    })?;
    if done.named + done.unknown == 0 {
        out("no native code lacks a name or a line")?;
        return Ok(Exit::Done);
    }
    out(&format!(
        "found {} of {} in native code; {} of stacks replaced",
        done.named,
        counted(done.named + done.unknown, "place"),
        counted(done.files, "file")
    ))?;
    symbols.tell_missing();
    if interrupt::requested() {
        say("interrupted: the rest has no names or lines yet");
        return Ok(Exit::Interrupted);
    }
    Ok(Exit::Done)
}

fn named(line: FilledLine) -> NamedCode {
    NamedCode {
        function: line.function.to_string(),
        file: line.file.map(|file| file.to_string()),
        line: Some(line.line).filter(|&line| line > 0),
    }
}

pub(crate) fn upgrade(args: &UpgradeArgs) -> anyhow::Result<Exit> {
    let done = Lake::upgrade(&args.lake)?;
    out(&match done.files {
        0 => "the tables are of this version".to_owned(),
        files => format!("rewrote {} ({})", counted(files, "file"), counted(done.rows, "row")),
    })?;
    Ok(Exit::Done)
}
