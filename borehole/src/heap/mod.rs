//! Heaps of PHP: kept in files, analysed, written.
//!
//! [`HeapFile`] opens whatever holds a heap: a dump of memory, a core file, a graph as `.rmem`, as reli's JSON, or in a database.
//! [`write()`] writes a graph, `write_database` makes a database of it, and `add_run` adds it to one.

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

/// The graph of the heap whose memory is in `dump`.
///
/// # Errors
/// When there is no PHP in it, or one that is not understood.
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

/// In what a heap is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HeapFormat {
    /// Memory of a process, to be analysed: `.rdump`.
    Rdump,
    /// Memory of a process that crashed: an ELF core file.
    Core,
    /// A graph in reli's container: `.rmem`.
    Rmem,
    /// A graph as reli writes it as JSON.
    Json,
    /// A graph, a line of JSON for each node, edge, location and fact.
    Lines,
    /// A heap as Java's tools read it.
    Hprof,
    /// A heap as Chrome's developer tools read it.
    HeapSnapshot,
    /// A database of SQLite.
    Sqlite,
    /// A database of a server of PostgreSQL.
    Postgresql,
    /// A database of a server of MySQL or MariaDB.
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

    /// Whether it can be read; the others are written for other programs.
    #[must_use]
    pub const fn readable(self) -> bool {
        !matches!(self, Self::Lines | Self::Hprof | Self::HeapSnapshot)
    }

    /// The one that files of this name are in, upper and lower case being one.
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

/// What is wrong with a heap, or with the file that holds it. It names the file.
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

    /// The same, of the file with this name.
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

    /// What the user may try next.
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
