//! `inspector:memory:dump:inspect`: the contents of a dump.
//!
//! Source: reli 0.12, its command of this name, for what is printed; our `.rdump` has other fields.

use std::fmt::Write as _;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use borehole::heap::{Dump, DumpRecovery};
use borehole_process::{ForeignProcess as _, MemoryMapping, MemorySpan};
use clap::Args;

use crate::exit::Exit;
use crate::messages::say;
use crate::stdout::put;

/// `inspector:memory:dump:inspect`.
#[derive(Args, Clone, Debug)]
pub(crate) struct InspectArgs {
    /// A dump
    #[arg(value_name = "FILE")]
    input: PathBuf,
}

pub(super) fn inspect(args: &InspectArgs) -> anyhow::Result<Exit> {
    let name = || args.input.display().to_string();
    let file = File::open(&args.input).with_context(name)?;
    let (dump, recovery) = Dump::recover(BufReader::new(file)).with_context(name)?;
    put(&contents(&dump), false)?;
    Ok(told(&args.input, &recovery))
}

/// Prints what a damaged file has lost.
fn told(path: &Path, recovery: &DumpRecovery) -> Exit {
    for warning in &recovery.warnings {
        say(&format!("warning: {}: {}", path.display(), warning.to_error("rdump")));
    }
    if recovery.is_whole() { Exit::Done } else { Exit::Damaged }
}

fn contents(dump: &Dump) -> String {
    let mut text = "facts\n".to_owned();
    for (name, value) in dump.facts() {
        let _ = writeln!(text, "  {name} {}", value.escape_ascii());
    }
    let _ = writeln!(text, "\nmappings\n  {} in all", dump.mappings().iter().count());
    for mapping in dump.mappings().iter() {
        let _ = writeln!(text, "  {}", line(mapping));
    }
    let _ = writeln!(text, "\nregions\n  {} bytes in {}", dump.held_bytes(), dump.spans().count());
    for MemorySpan { address, length } in dump.spans() {
        let end = address.saturating_add(length as u64);
        let _ = writeln!(text, "  {address:012x}-{end:012x} {length}");
    }
    text
}

/// A mapping as in `/proc/PID/maps`, without the fields that mean nothing elsewhere.
fn line(mapping: &MemoryMapping) -> String {
    let flag = |is_set, flag| if is_set { flag } else { '-' };
    let flags: String = [
        flag(mapping.readable, 'r'),
        flag(mapping.writable, 'w'),
        flag(mapping.executable, 'x'),
        if mapping.shared { 's' } else { 'p' },
    ]
    .into_iter()
    .collect();
    let (start, end, offset) = (mapping.start, mapping.end, mapping.file_offset);
    let line = format!("{start:012x}-{end:012x} {flags} {offset:08x} {}", mapping.path.escape_ascii());
    line.trim_end().to_owned()
}
