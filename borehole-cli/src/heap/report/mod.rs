//! `borehole heap report`: what is wrong with a heap.

pub(super) mod json;
mod tables;
pub(super) mod text;

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use borehole::heap::Graph;
use borehole::heap::findings::{Report, report};
use borehole::heap::retention::Follow;
use borehole::heap::views::Heap;
use borehole::{Error, Existing, Output};
use clap::Args;

use super::file::Memory;
use super::password;
use crate::cell::terminal_width;
use crate::exit::Exit;
use crate::interrupt;
use crate::outputs::stdout_error;

/// `borehole heap report`.
#[derive(Args, Clone, Debug)]
pub(crate) struct ReportArgs {
    /// A graph, a dump or a core file
    #[arg(value_name = "FILE")]
    pub(crate) input: PathBuf,

    #[command(flatten)]
    pub(crate) output: ReportOutput,

    #[command(flatten)]
    pub(crate) memory: Memory,
}

/// Where a report goes, and how it looks.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct ReportOutput {
    /// The file to write instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    /// Replace the output if it exists
    #[arg(long)]
    pub(crate) force: bool,

    /// Print JSON: `meta` and `findings` as in reli's, and the tables
    #[arg(long)]
    pub(crate) json: bool,

    /// Indent JSON
    #[arg(long)]
    pub(crate) pretty: bool,

    /// Show so many rows of each table; 0 shows all that were kept
    #[arg(long, visible_alias = "top", value_name = "COUNT", default_value_t = ReportOutput::LIMIT)]
    pub(crate) limit: usize,
}

impl ReportArgs {
    pub(crate) fn run(&self) -> anyhow::Result<Exit> {
        let file = password::open(&self.input)?;
        self.output.check()?;
        let opened = self.memory.graph(&file)?;
        self.output.write(&*opened.graph, file.name())?;
        Ok(Exit::after(&opened.recovery))
    }
}

impl ReportOutput {
    /// Rows of each table.
    pub(crate) const LIMIT: usize = 10;

    fn path(&self) -> Option<&Path> {
        self.output.as_deref().filter(|path| *path != Path::new("-"))
    }

    fn existing(&self) -> Existing {
        if self.force { Existing::Replace } else { Existing::Keep }
    }

    /// Whether the report can be written where it is to go: looked at before there is one.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        match self.path() {
            Some(path) if !self.force && path.is_file() => {
                anyhow::bail!("{}: file exists; --force replaces it", path.display())
            }
            _ => Ok(()),
        }
    }

    /// Writes the report on `graph`, which is called `name`.
    pub(crate) fn write(&self, graph: &dyn Graph, name: &str) -> anyhow::Result<()> {
        let report = report(&Heap::new(graph, Follow::default()));
        let Some(path) = self.path() else {
            let text = self.rendered(&report, name, terminal_width());
            return Ok(io::stdout().write_all(text.as_bytes()).map_err(stdout_error)?);
        };
        let mut output = Output::create_private(path, self.existing())?;
        interrupt::unfinished(output.unfinished());
        let text = self.rendered(&report, name, COLUMNS);
        let written = output.write_all(text.as_bytes());
        written.map_err(|source| Error::Write { name: path.display().to_string(), source })?;
        Ok(output.complete()?)
    }

    fn rendered(&self, report: &Report, name: &str, columns: usize) -> String {
        if self.json {
            return json::text(report, self.pretty);
        }
        let limit = if self.limit == 0 { usize::MAX } else { self.limit };
        text::text(report, name, columns.max(NARROWEST), limit)
    }
}

/// The columns of a report in a file.
const COLUMNS: usize = 80;
/// In fewer columns tables have no room.
const NARROWEST: usize = 60;
