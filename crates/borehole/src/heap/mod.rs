//! PHP heaps: opening, analysis and writing.
//!
//! [`HeapFile`] opens anything that holds a heap: a memory dump, a core file, or a graph as `.rmem`, as reli's JSON or in a
//! database. [`write()`] writes a graph, `write_database` creates a database from it, and `add_run` adds it to one.

#[cfg(feature = "sql")]
mod database;
mod open;
mod save;

use std::fmt;

pub use crate::heap_format::HeapFormat;
pub use borehole_capture::heap::{CapturedHeap, HeapOptions, HeapStatistics, MemoryLimitError, take};
pub use borehole_heap::{
    Graph, GraphBuilder, GraphCounts, GraphStorage, HeapGraph, HeapInfo, HeapSink, MemoryLocation,
    MemoryTotal, NodeId, NodeType, Parents, Strength, StringId, Totals, TreeParents, compare, findings, info,
    path, retention, views,
};
pub use borehole_php::{Analysis, AnalyzeOptions, AttachOptions, FatalError};
pub use borehole_process::{Dump, DumpRecovery};
#[cfg(feature = "sql")]
pub use borehole_sql as sql;
#[cfg(feature = "sqlite")]
pub use database::write_database;
#[cfg(feature = "sql")]
pub use database::{Address, PASSWORD_VARIABLE, add_run};
pub use open::{HeapFile, OpenOptions, Opened};
pub use save::write;

/// The memory that any analysis may take, in bytes: to do with less would save little beside the command itself.
const LEAST_GOAL_BYTES: usize = 64 << 20;

/// Builds the graph of the heap whose memory is in `dump`, which is freed as soon as it has been walked.
///
/// # Errors
/// If the process does not run PHP, or an unsupported version.
pub fn analyze(dump: Dump, options: &AnalyzeOptions<'_>) -> Result<(HeapGraph, Analysis), Error> {
    analyze_as(dump, options, GraphStorage::Plain)
}

/// Like [`analyze`], with a graph that is stored like this: a packed one takes less memory, and is read in order, as by [`write()`]
/// to `.rmem`.
///
/// # Errors
/// As [`analyze`].
pub fn analyze_as(
    mut dump: Dump,
    options: &AnalyzeOptions<'_>,
    storage: GraphStorage,
) -> Result<(HeapGraph, Analysis), Error> {
    let held_bytes = usize::try_from(dump.held_bytes()).unwrap_or(usize::MAX);
    let goal = options.memory_goal.unwrap_or((held_bytes / 2).max(LEAST_GOAL_BYTES));
    dump.keep(goal / 4 * 3, goal);
    let mut builder = GraphBuilder::new();
    let stated = MemoryLimitError::of(&dump);
    let failure = options.failure.or(stated.as_ref().map(MemoryLimitError::failure));
    let options = AnalyzeOptions { failure, ..*options };
    let analysis =
        borehole_php::analyze(&dump, &options, &mut builder).map_err(|error| Error::new("", error))?;
    if let Some(created) = dump.fact("created_at").and_then(|created| std::str::from_utf8(created).ok()) {
        builder.set_created(created);
    }
    drop(dump);
    let graph = builder.finish_as(storage).map_err(|error| Error::new("", error))?;
    Ok((graph, analysis))
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

    /// Whether the output exists already, and is to be kept.
    #[must_use]
    pub fn is_taken(&self) -> bool {
        self.cause.downcast_ref::<crate::Error>().is_some_and(crate::Error::is_taken)
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
