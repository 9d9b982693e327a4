//! Outputs for graphs and for texts about heaps.

use std::io::{self, IsTerminal as _};
use std::path::{Path, PathBuf};

use anyhow::{bail, ensure};
use borehole::heap::sql::{Access, AddedRun, Server};
use borehole::heap::{self, Address, Graph, HeapFormat};
use borehole::{Compression, Existing, Output};
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use serde::Serialize;

use super::password::{self, WaitArgs};
use crate::interrupt;
use crate::messages::say;
use crate::outputs::{complete, file};
use crate::stdout::{STDOUT, data};

/// The output of a graph, and its format.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct GraphOutput {
    /// The file to write, whose extension selects the format, or the address of a database, such as
    /// postgresql://USER@HOST/DATABASE; an existing database gets another run
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    /// The format, instead of the one that the extension selects
    #[arg(short, long, visible_alias = "to", value_parser = graph_format(), value_name = "FORMAT")]
    pub(crate) format: Option<HeapFormat>,

    /// Replace the output if it exists
    #[arg(long, requires = "output")]
    pub(crate) force: bool,

    /// Indent JSON
    #[arg(long)]
    pub(crate) pretty: bool,

    /// The server that reli's options describe.
    #[arg(skip)]
    pub(crate) server: Option<Server>,
}

/// The format and the destination of a graph.
pub(crate) struct GraphTarget {
    format: HeapFormat,
    /// `None` for files and standard output.
    address: Option<Address>,
}

impl GraphTarget {
    /// Whether it is a file of rows, which are written in order.
    pub(crate) fn is_rmem(&self) -> bool {
        self.address.is_none() && self.format == HeapFormat::Rmem
    }
}

/// Parses a format of graphs that can be written.
fn graph_format() -> impl TypedValueParser<Value = HeapFormat> {
    let written = HeapFormat::ALL.iter().filter_map(|&format| {
        let (help, alias) = match format {
            HeapFormat::Rmem => ("Reli's container, the fastest to open", None),
            HeapFormat::Json => ("Reli's JSON", None),
            HeapFormat::Lines => ("A line of JSON for each node, edge, location and fact", None),
            HeapFormat::Hprof => ("For Eclipse MAT and VisualVM", None),
            HeapFormat::HeapSnapshot => ("For Chrome's developer tools", None),
            HeapFormat::Sqlite => ("An SQLite database", Some("sqlite")),
            HeapFormat::Postgresql => ("A PostgreSQL database; the output is its address", None),
            HeapFormat::Mysql => ("A MySQL or MariaDB database; the output is its address", Some("mariadb")),
            _ => return None,
        };
        Some(PossibleValue::new(format.name()).help(help).aliases(alias))
    });
    PossibleValuesParser::new(written).try_map(|name| name.parse::<HeapFormat>())
}

/// The output of a text about a heap, which only its owner can read.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct TextOutput {
    /// The file to write instead of standard output
    #[arg(short, long, value_name = "OUTPUT")]
    pub(crate) output: Option<PathBuf>,

    /// Replace the output if it exists
    #[arg(long, requires = "output")]
    pub(crate) force: bool,
}

impl TextOutput {
    /// The file; `None` for standard output.
    pub(crate) fn path(&self) -> Option<&Path> {
        file(self.output.as_deref())
    }

    /// Fails if the output cannot be written. It is checked before the text is computed, so that a wrong name fails at once.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        match self.path() {
            Some(path) => check(path, self.force),
            None => Ok(()),
        }
    }

    /// Fails if the extension of the file promises something other than text or JSON.
    pub(super) fn check_ending(&self, is_json: bool) -> anyhow::Result<()> {
        let Some(path) = self.path() else { return Ok(()) };
        let ending = path.extension().map(|ending| ending.to_string_lossy().to_ascii_lowercase());
        match ending.as_deref() {
            Some("json") if !is_json => {
                bail!("missing --json: without it, {} would be plain text", path.display())
            }
            Some("html" | "svg") => {
                bail!("unsupported output {}: borehole heap viz writes pages", path.display())
            }
            _ => Ok(()),
        }
    }

    /// Writes `text` to standard output, or to a file that appears whole or not at all.
    pub(crate) fn write(&self, text: &str) -> anyhow::Result<()> {
        let output = match self.path() {
            Some(path) => begin(path, Existing::replacing(self.force))?,
            None => Output::direct(STDOUT, data(), Compression::None)?,
        };
        complete(output, text)
    }
}

/// Raised when a key of a report or comparison changes its meaning or goes away.
const SCHEMA_VERSION: u32 = 1;

/// A view as one JSON document, as it serializes.
pub(super) fn document(view: impl Serialize, is_pretty: bool) -> anyhow::Result<String> {
    let mut object = serde_json::to_value(view)?;
    object["schema_version"] = SCHEMA_VERSION.into();
    Ok(if is_pretty { format!("{object:#}\n") } else { format!("{object}\n") })
}

/// Begins a file that only its owner can read, and that an interrupt removes.
pub(super) fn begin(path: &Path, existing: Existing) -> anyhow::Result<Output> {
    // The analysis of a heap cannot be asked to stop.
    interrupt::before_leaving(|| say("interrupted: nothing was written"));
    interrupt::heed_at_once();
    Ok(interrupt::begun(|| Output::create_private(path, existing))?)
}

/// Fails if a file cannot be written there, for example because its folder is missing.
fn check(path: &Path, force: bool) -> anyhow::Result<()> {
    let existing = Existing::replacing(force);
    // The reader of a pipe would see it opened and closed.
    if path.exists() && !path.is_file() {
        return Ok(Output::check(path, existing)?);
    }
    drop(begin(path, existing)?);
    interrupt::unfinished(None);
    Ok(())
}

impl GraphOutput {
    fn path(&self) -> Option<&Path> {
        file(self.output.as_deref())
    }

    pub(super) fn is_stdout(&self) -> bool {
        self.server.is_none() && self.path().is_none()
    }

    fn create(&self, path: &Path) -> anyhow::Result<Output> {
        begin(path, Existing::replacing(self.force))
    }

    /// The format and the destination. They are checked before there is a graph, so that a wrong output fails at once.
    ///
    /// # Errors
    /// When the format is unknown, or the output cannot be written.
    pub(crate) fn checked_target(&self, waits: WaitArgs) -> anyhow::Result<GraphTarget> {
        let by_name = self.path().map(Address::new);
        let target = match self.server.clone().map(Address::Server).or(by_name) {
            Some(address @ Address::Server(_)) => self.checked_server(address, waits)?,
            _ => GraphTarget { format: self.checked_format()?, address: None },
        };
        let found = target.format.name();
        ensure!(
            !self.pretty || target.format == HeapFormat::Json,
            "unsupported format: expected json for --pretty, found {found}"
        );
        Ok(target)
    }

    /// A server, once a connection to it has worked: no process is stopped in vain.
    fn checked_server(&self, address: Address, waits: WaitArgs) -> anyhow::Result<GraphTarget> {
        let Address::Server(server) = password::asked(address, Access::Write, waits)? else {
            bail!("expected the address of a server, found a file")
        };
        let format = HeapFormat::from(server.kind());
        let asked = self.format.unwrap_or(format);
        ensure!(
            asked == format,
            "unsupported output: expected {}, found the address of a {} server",
            asked.name(),
            format.name()
        );
        let address = Address::Server(server);
        drop(address.open(Access::Write)?);
        Ok(GraphTarget { format, address: Some(address) })
    }

    fn checked_format(&self) -> anyhow::Result<HeapFormat> {
        let by_name = self.path().and_then(HeapFormat::from_path);
        let format = match (self.format, by_name, self.path()) {
            (Some(format), ..) => format,
            (None, Some(format), _) => format,
            (None, None, None) => HeapFormat::Json,
            (None, None, Some(path)) => bail!(
                "missing output format: expected -f FORMAT or a known file extension, found {}",
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
            // An existing database gets another run.
            Some(path) if format == HeapFormat::Sqlite && path.is_file() => Ok(format),
            Some(path) => match check(path, self.force) {
                Err(error) if format == HeapFormat::Sqlite && !self.force && is_taken(&error) => Ok(format),
                checked => checked.map(|()| format),
            },
            None => Ok(format),
        }
    }

    /// Writes `graph`.
    pub(crate) fn write(&self, graph: &dyn Graph, target: &GraphTarget) -> anyhow::Result<()> {
        let format = target.format;
        if let Some(address) = &target.address {
            return add_run(graph, address);
        }
        match self.path() {
            Some(path) if format == HeapFormat::Sqlite => self.write_database(graph, path),
            Some(path) => {
                let mut output = self.create(path)?;
                let name = output.name().to_owned();
                heap::write(graph, format, self.pretty, &name, &mut output)?;
                Ok(output.complete()?)
            }
            None => {
                let mut output = Output::direct(STDOUT, data(), Compression::None)?;
                heap::write(graph, format, self.pretty, STDOUT, &mut output)?;
                Ok(output.complete()?)
            }
        }
    }

    fn write_database(&self, graph: &dyn Graph, path: &Path) -> anyhow::Result<()> {
        if self.force || !path.is_file() {
            let written = self
                .create(path)
                .and_then(|output| Ok(heap::write_database(graph, output, graph.created())?));
            match written {
                // Another process has created it meanwhile.
                Err(error) if !self.force && is_taken(&error) => {}
                written => return written,
            }
        }
        add_run(graph, &Address::File(path.to_owned()))
    }
}

/// Whether a file could not be written because it exists.
fn is_taken(error: &anyhow::Error) -> bool {
    let of_heap = error.downcast_ref::<heap::Error>().map(heap::Error::is_taken);
    of_heap.or_else(|| error.downcast_ref::<borehole::Error>().map(borehole::Error::is_taken)) == Some(true)
}

/// Adds a run to an existing database, and prints its number.
fn add_run(graph: &dyn Graph, address: &Address) -> anyhow::Result<()> {
    let name = address.name();
    let mut waiting = || say(&format!("waiting for {name}, which is being written by another process"));
    let AddedRun { run, unfinished } = heap::add_run(graph, address, graph.created(), &mut waiting)?;
    say(&format!("{name}: added run {run}"));
    if let Some(error) = unfinished {
        say(&format!(
            "warning: {name}: run {run} is stored, but queries are slow until a later run completes the indexes, views and \
             statistics: {error}"
        ));
    }
    Ok(())
}
