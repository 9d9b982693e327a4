//! Where a graph goes.

use std::io::{self, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{anyhow, bail};
use borehole::heap::{self, Graph, HeapFormat};
use borehole::{Compression, Existing, Output};
use clap::{Args, ValueEnum};

use crate::interrupt;
use crate::messages::say;
use crate::outputs::{STDOUT, stdout_error};
use crate::utc;

/// Where a graph goes, and as what.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct GraphOutput {
    /// The file to write; its name tells the format. A database that exists gets a further run
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    /// The format, whatever the name
    #[arg(short, long, value_enum, value_name = "FORMAT")]
    pub(crate) format: Option<GraphFormat>,

    /// Replace an existing file
    #[arg(long)]
    pub(crate) force: bool,

    /// Indent JSON
    #[arg(long)]
    pub(crate) pretty: bool,
}

/// A format that graphs are written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum GraphFormat {
    /// Reli's container: the fastest to open
    Rmem,
    /// Reli's JSON
    Json,
    /// A line of JSON for each node, edge, location and fact
    #[value(name = "jsonl")]
    Lines,
    /// For Eclipse MAT and VisualVM
    Hprof,
    /// For Chrome's developer tools
    #[value(name = "heapsnapshot")]
    HeapSnapshot,
    /// A database of SQLite
    #[value(name = "sqlite3", alias = "sqlite")]
    Sqlite,
}

/// Writes what was found out about heaps, to a file that appears whole, or to standard output.
pub(super) fn write_text(text: &str, output: Option<&Path>, existing: Existing) -> anyhow::Result<()> {
    let Some(path) = output.filter(|path| *path != Path::new("-")) else {
        return Ok(io::stdout().write_all(text.as_bytes()).map_err(stdout_error)?);
    };
    let mut output = Output::create_private(path, existing)?;
    interrupt::unfinished(output.unfinished());
    output.write_all(text.as_bytes())?;
    Ok(output.complete()?)
}

impl From<GraphFormat> for HeapFormat {
    fn from(format: GraphFormat) -> Self {
        match format {
            GraphFormat::Rmem => Self::Rmem,
            GraphFormat::Json => Self::Json,
            GraphFormat::Lines => Self::Lines,
            GraphFormat::Hprof => Self::Hprof,
            GraphFormat::HeapSnapshot => Self::HeapSnapshot,
            GraphFormat::Sqlite => Self::Sqlite,
        }
    }
}

impl GraphOutput {
    fn path(&self) -> Option<&Path> {
        self.output.as_deref().filter(|path| *path != Path::new("-"))
    }

    fn existing(&self) -> Existing {
        if self.force { Existing::Replace } else { Existing::Keep }
    }

    /// What is written; looked at before there is a graph, so that nothing is waited for in vain.
    ///
    /// # Errors
    /// When it cannot be told, or not be written there.
    pub(crate) fn checked_format(&self) -> anyhow::Result<HeapFormat> {
        let by_name = self.path().and_then(HeapFormat::from_path);
        let format = match (self.format, by_name, self.path()) {
            (Some(format), ..) => format.into(),
            (None, Some(format), _) => format,
            (None, None, None) => HeapFormat::Json,
            (None, None, Some(path)) => bail!(
                "missing output format: expected -f FORMAT or a name that tells it, found the name {}, which tells none",
                path.display()
            ),
        };
        let is_binary = matches!(format, HeapFormat::Rmem | HeapFormat::Hprof);
        match self.path() {
            None if format == HeapFormat::Sqlite => {
                bail!("unsupported output: a database needs a file; name one with -o")
            }
            None if is_binary && io::stdout().is_terminal() => {
                bail!("unsupported output: expected a file or a pipe, found a terminal; name one with -o")
            }
            Some(path) if !self.force && format != HeapFormat::Sqlite && path.is_file() => {
                bail!("{}: file exists; --force replaces it", path.display())
            }
            _ => Ok(format),
        }
    }

    /// Writes `graph`, and answers what was written.
    pub(crate) fn write(&self, graph: &dyn Graph, format: HeapFormat) -> anyhow::Result<()> {
        match self.path() {
            Some(path) if format == HeapFormat::Sqlite => self.write_database(graph, path),
            Some(path) => {
                let mut output = Output::create_private(path, self.existing())?;
                interrupt::unfinished(output.unfinished());
                let name = output.name().to_owned();
                heap::write(graph, format, self.pretty, &name, &mut output)?;
                Ok(output.complete()?)
            }
            None => {
                let mut output = Output::direct(STDOUT, io::stdout().lock(), Compression::None);
                heap::write(graph, format, self.pretty, STDOUT, &mut output)?;
                Ok(output.complete()?)
            }
        }
    }

    fn write_database(&self, graph: &dyn Graph, path: &Path) -> anyhow::Result<()> {
        let created = match graph.created() {
            "" => utc::iso(utc::now_s()),
            created => created.to_owned(),
        };
        if path.is_file() && !self.force {
            let run = heap::write_sqlite(graph, path, false, &created)?;
            say(&format!("{}: run {run} of the database", path.display()));
            return Ok(());
        }
        let output = Output::create_private(path, self.existing())?;
        let unfinished = output.unfinished().ok_or_else(|| anyhow!("{}: expected a file", path.display()))?;
        interrupt::unfinished(Some(unfinished));
        heap::write_sqlite(graph, unfinished, true, &created)?;
        Ok(output.complete()?)
    }
}
