//! Which inputs to read, and how.

use std::fs;
use std::io::{self, IsTerminal as _};

use anyhow::{Context as _, bail};
use borehole::model::Tables;
use borehole::{Format, Input, InputOptions, OnDamage, ProfileSink, ReadOptions, Recovery, Source};
use clap::Args;

use crate::interrupt::{self, Interruptible};
use crate::progress;

/// Several inputs.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Inputs {
    /// Files to read; `-`, or none, is standard input. Several are merged
    #[arg(value_name = "INPUT")]
    pub(crate) paths: Vec<String>,

    #[command(flatten)]
    pub(crate) reading: Reading,
}

/// How to read.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Reading {
    /// The format of the inputs, instead of telling it by content (`borehole formats` lists them)
    #[arg(long, value_name = "FORMAT", value_parser = format_name)]
    pub(crate) from: Option<Format>,

    /// Read on after damage, and say what was lost
    #[arg(long)]
    pub(crate) lenient: bool,

    /// How much memory the definitions of one rbt segment or trc batch may take, in MiB [default: 1024]
    #[arg(long, value_name = "MIB", hide_short_help = true)]
    pub(crate) max_definitions: Option<usize>,

    /// The largest document to read as a whole (pprof, speedscope), in MiB after decompression [default: 4096]
    #[arg(long, value_name = "MIB", hide_short_help = true)]
    pub(crate) max_document: Option<usize>,
}

impl Reading {
    pub(crate) fn options(&self) -> InputOptions {
        let mut read = ReadOptions::default();
        read.on_damage = if self.lenient { OnDamage::ReadOn } else { OnDamage::Fail };
        let limits = &mut read.limits;
        for (limit, mib) in [
            (&mut limits.definition_bytes, self.max_definitions),
            (&mut limits.document_bytes, self.max_document),
        ] {
            *limit = mib.map_or(*limit, |mib| mib.saturating_mul(1 << 20));
        }
        InputOptions { format: self.from, read }
    }

    /// Opens one input; `-` is standard input.
    pub(crate) fn open(&self, path: &str) -> anyhow::Result<Input> {
        let source = match path {
            "-" if io::stdin().is_terminal() => {
                bail!("missing input: expected a path, or data on standard input, found a terminal")
            }
            "-" => Source::stdin(),
            path => Source::path(path)?,
        };
        Ok(Input::open(progress::shown(source), &self.options())?)
    }
}

impl Inputs {
    /// Streams all inputs into `sink`, each opened when the one before it has been read, and finishes it.
    /// Ctrl-C completes what has been read. `output` names what the sink writes, for messages.
    pub(crate) fn read_into(&self, sink: &mut dyn ProfileSink, output: &str) -> anyhow::Result<Recovery> {
        interrupt::heed();
        self.missing()?;
        let mut sink = Interruptible(sink);
        let mut tables = Tables::default();
        let mut recovery = Recovery::default();
        for path in self.names() {
            recovery.merge(
                self.reading
                    .open(path)?
                    .read_into(&mut tables, &mut sink)
                    .map_err(|error| error.with_output(output))?,
            );
            if recovery.stopped {
                break;
            }
        }
        sink.finish(&tables).with_context(|| output.to_owned())?;
        Ok(recovery)
    }

    /// Fails if an input is not there: better now than after an hour of reading the others.
    fn missing(&self) -> anyhow::Result<()> {
        for path in self.names().filter(|path| *path != "-") {
            fs::metadata(path).with_context(|| path.to_owned())?;
        }
        Ok(())
    }

    /// What the user named; `-` if that is nothing.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        let stdin = self.paths.is_empty().then_some("-");
        self.paths.iter().map(String::as_str).chain(stdin)
    }
}

/// The format of that name.
pub(crate) fn format_name(name: &str) -> Result<Format, String> {
    Format::from_name(name).ok_or_else(|| {
        let names: Vec<_> = borehole::formats_table().iter().map(|facts| facts.name).collect();
        format!("unknown format: expected one of {}", names.join(", "))
    })
}
