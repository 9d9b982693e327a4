//! Where a graph goes.

use std::io::{self, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{anyhow, bail, ensure};
use borehole::heap::sql::{Access, Server};
use borehole::heap::{self, Address, Graph, HeapFormat};
use borehole::{Compression, Existing, Output};
use clap::{Args, ValueEnum};

use super::password;
use crate::interrupt;
use crate::messages::say;
use crate::outputs::{STDOUT, stdout_error};
use crate::utc;

/// Where a graph goes, and as what.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct GraphOutput {
    /// The file to write, whose name tells the format, or the address of a database, such as
    /// postgresql://USER@HOST/DATABASE. A database that exists gets a further run
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    /// The format, whatever the name
    #[arg(short, long, visible_alias = "to", value_enum, value_name = "FORMAT")]
    pub(crate) format: Option<GraphFormat>,

    /// Replace the output if it exists
    #[arg(long)]
    pub(crate) force: bool,

    /// Indent JSON
    #[arg(long)]
    pub(crate) pretty: bool,

    /// The server, of which reli's options tell the parts.
    #[arg(skip)]
    pub(crate) server: Option<Server>,
}

/// What is written.
pub(crate) struct Target {
    format: HeapFormat,
    /// The server, if it is one.
    address: Option<Address>,
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
    /// A database of a server of PostgreSQL, whose address is the output
    Postgresql,
    /// A database of a server of MySQL or MariaDB, whose address is the output
    #[value(alias = "mariadb")]
    Mysql,
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
            GraphFormat::Postgresql => Self::Postgresql,
            GraphFormat::Mysql => Self::Mysql,
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
    pub(crate) fn checked_target(&self) -> anyhow::Result<Target> {
        let by_name = self.path().map(Address::new);
        match self.server.clone().map(Address::Server).or(by_name) {
            Some(address @ Address::Server(_)) => self.checked_server(address),
            _ => Ok(Target { format: self.checked_format()?, address: None }),
        }
    }

    /// A server that can be written to; before a process is stopped for nothing.
    fn checked_server(&self, address: Address) -> anyhow::Result<Target> {
        let Address::Server(server) = password::asked(address, Access::Write)? else {
            bail!("expected the address of a server, found a file")
        };
        let format = HeapFormat::from(server.kind());
        let asked = self.format.map_or(format, HeapFormat::from);
        ensure!(
            asked == format,
            "unsupported output: expected {}, found the address of a server of {}",
            asked.name(),
            format.name()
        );
        let address = Address::Server(server);
        drop(address.open(Access::Write)?);
        Ok(Target { format, address: Some(address) })
    }

    fn checked_format(&self) -> anyhow::Result<HeapFormat> {
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
            _ if matches!(format, HeapFormat::Postgresql | HeapFormat::Mysql) => {
                let name = format.name();
                bail!(
                    "missing output: expected the address of a database, as in -o {name}://USER@HOST/DATABASE"
                )
            }
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
    pub(crate) fn write(&self, graph: &dyn Graph, target: &Target) -> anyhow::Result<()> {
        let format = target.format;
        if let Some(address) = &target.address {
            return add_run(graph, address);
        }
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
        if path.is_file() && !self.force {
            return add_run(graph, &Address::File(path.to_owned()));
        }
        let output = Output::create_private(path, self.existing())?;
        let unfinished = output.unfinished().ok_or_else(|| anyhow!("{}: expected a file", path.display()))?;
        interrupt::unfinished(Some(unfinished));
        heap::add_run(graph, &Address::File(unfinished.to_owned()), true, &created(graph))?;
        Ok(output.complete()?)
    }
}

/// When the heap was taken; of what does not say, now.
fn created(graph: &dyn Graph) -> String {
    match graph.created() {
        "" => utc::iso(utc::now_s()),
        created => created.to_owned(),
    }
}

/// Adds a run to a database that exists, and says its number.
fn add_run(graph: &dyn Graph, address: &Address) -> anyhow::Result<()> {
    let run = heap::add_run(graph, address, false, &created(graph))?;
    say(&format!("{}: run {run} of the database", address.name()));
    Ok(())
}
