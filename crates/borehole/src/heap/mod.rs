//! PHP heaps: opening, analysis and writing.
//!
//! [`HeapFile`] opens anything that holds a heap: a memory dump, a core file, or a graph as `.rmem`, as reli's JSON or in a
//! database. [`write()`] writes a graph, `write_database` creates a database from it, and `add_run` adds it to one.

#[cfg(feature = "sql")]
mod database;
mod open;
mod save;

use std::fmt;
use std::path::Path;

pub use borehole_capture::heap::{HeapOptions, HeapStatistics, MemoryLimitError, Taken, take};
pub use borehole_heap::{
    Builder, Counts, Graph, HeapGraph, HeapSink, Info, Location, NodeId, NodeType, Parents, Strength,
    StringId, Total, Totals, TreeParents, compare, findings, info, path, retention, views,
};
pub use borehole_php::{Analysis, AnalyzeOptions, AttachOptions, Failure};
pub use borehole_process::{Dump, DumpRecovery};
#[cfg(feature = "sql")]
pub use borehole_sql as sql;
#[cfg(feature = "sqlite")]
pub use database::write_database;
#[cfg(feature = "sql")]
pub use database::{Address, PASSWORD_VARIABLE, add_run};
pub(crate) use open::tell;
pub use open::{HeapFile, OpenOptions, Opened};
pub use save::write;

/// Builds the graph of the heap whose memory is in `dump`.
///
/// # Errors
/// If the process does not run PHP, or an unsupported version.
pub fn analyze(dump: &Dump, options: &AnalyzeOptions<'_>) -> Result<(HeapGraph, Analysis), Error> {
    let mut builder = Builder::new();
    let stated = MemoryLimitError::of(dump);
    let failure = options.failure.or(stated.as_ref().map(MemoryLimitError::failure));
    let options = AnalyzeOptions { failure, ..*options };
    let analysis =
        borehole_php::analyze(dump, &options, &mut builder).map_err(|error| Error::new("", error))?;
    if let Some(created) = dump.fact("created_at").and_then(|created| std::str::from_utf8(created).ok()) {
        builder.set_created(created);
    }
    let graph = builder.finish().map_err(|error| Error::new("", error))?;
    Ok((graph, analysis))
}

/// The format of a heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HeapFormat {
    /// Memory of a process, still to be analysed: `.rdump`.
    Rdump,
    /// Memory of a process that crashed: an ELF core file.
    Core,
    /// A graph in reli's container: `.rmem`.
    Rmem,
    /// A graph in reli's JSON.
    Json,
    /// A graph with a line of JSON for each node, edge, location and fact.
    Lines,
    /// A heap for Java's tools.
    Hprof,
    /// A heap for Chrome's developer tools.
    HeapSnapshot,
    /// An SQLite database.
    Sqlite,
    /// A database of a PostgreSQL server.
    Postgresql,
    /// A database of a MySQL or MariaDB server.
    Mysql,
}

impl HeapFormat {
    /// Its name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rdump => "rdump",
            Self::Core => "core",
            Self::Rmem => "rmem",
            Self::Json => "json",
            Self::Lines => "jsonl",
            Self::Hprof => "hprof",
            Self::HeapSnapshot => "heapsnapshot",
            Self::Sqlite => "sqlite3",
            Self::Postgresql => "postgresql",
            Self::Mysql => "mysql",
        }
    }

    /// Whether it can be read; the others are only written, for other programs.
    #[must_use]
    pub const fn readable(self) -> bool {
        !matches!(self, Self::Lines | Self::Hprof | Self::HeapSnapshot)
    }

    /// The format of files with this name, in upper or lower case.
    #[must_use]
    pub fn from_path(path: &Path) -> Option<Self> {
        let extension = path.extension()?.to_str()?.to_ascii_lowercase();
        match extension.as_str() {
            "rdump" => Some(Self::Rdump),
            "rmem" => Some(Self::Rmem),
            "json" => Some(Self::Json),
            "jsonl" => Some(Self::Lines),
            "hprof" => Some(Self::Hprof),
            "heapsnapshot" => Some(Self::HeapSnapshot),
            "sqlite3" | "sqlite" | "db" => Some(Self::Sqlite),
            _ => None,
        }
    }
}

/// An error of a heap or of the file that holds it, with the name of the file.
#[derive(Debug)]
pub struct Error {
    name: String,
    cause: Box<dyn std::error::Error + Send + Sync>,
    hint: Option<String>,
}

impl Error {
    #[cold]
    fn new(name: &str, cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self { name: name.to_owned(), cause: cause.into(), hint: None }
    }

    /// Adds the name of the file.
    #[cold]
    fn in_file(mut self, name: &str) -> Self {
        name.clone_into(&mut self.name);
        self
    }

    #[cold]
    fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// A suggestion of what to try next.
    #[must_use]
    pub fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name.as_str() {
            "" => write!(f, "{}", self.cause),
            name => write!(f, "{name}: {}", self.cause),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.cause.source()
    }
}
