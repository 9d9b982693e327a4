//! PHP heaps: opening, analysis and writing.
//!
//! [`HeapFile`] opens anything that holds a heap: a memory dump, a core file, or a graph as `.rmem`, as reli's JSON or in a
//! database. [`write()`] writes a graph, `write_database` creates a database from it, and `add_run` adds it to one.

#[cfg(feature = "capture")]
mod analysis;
#[cfg(feature = "sql")]
mod database;
#[cfg(feature = "capture")]
mod memory;
mod open;
mod save;

use std::{fmt, io};

use borehole_memory::OverBudget;

use crate::Advice;

pub use crate::heap_format::HeapFormat;
#[cfg(feature = "capture")]
pub use analysis::{analyze, analyze_as};
#[cfg(feature = "capture")]
pub use borehole_capture::heap::{CapturedHeap, HeapOptions, HeapStatistics, MemoryLimitError, take};
pub use borehole_heap::{
    AttributeValue, Child, Edge, Graph, GraphBuilder, GraphCounts, GraphStorage, HeapGraph, HeapInfo,
    HeapSink, LocationType, MemoryLocation, MemoryTotal, NodeAttribute, NodeId, NodeType, Parents,
    References, Region, Strength, StringId, Totals, TotalsScope, TreeParents, ValueKind, Vocabulary, compare,
    contradiction, findings, heapsnapshot, hprof, info, json, lines, path, retention, rmem, totals, views,
};
#[cfg(feature = "capture")]
pub use borehole_php::{
    Analysis, AnalyzeOptions, AttachOptions, FailedCall, FatalError, Identity, IsPhp, PhpRelease, ThreadModel,
};
#[cfg(feature = "capture")]
pub use borehole_process::{Dump, DumpRecovery};
#[cfg(feature = "sql")]
pub use borehole_sql as sql;
#[cfg(feature = "sqlite")]
pub use database::write_database;
#[cfg(feature = "sql")]
pub use database::{Address, PASSWORD_VARIABLE, add_run};
pub use open::{HeapFile, OpenOptions, Opened};
pub use save::write;

/// An error of a heap or of the file that holds it, with the name of the file.
#[derive(Debug)]
pub struct Error {
    name: String,
    cause: Box<dyn std::error::Error + Send + Sync>,
    advice: Option<Advice>,
}

impl Error {
    #[cold]
    fn new(name: &str, cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self { name: name.to_owned(), cause: cause.into(), advice: None }
    }

    /// Adds the name of the file.
    #[cfg(feature = "capture")]
    #[cold]
    fn in_file(mut self, name: &str) -> Self {
        name.clone_into(&mut self.name);
        self
    }

    #[cold]
    fn advising(mut self, advice: Advice) -> Self {
        self.advice = Some(advice);
        self
    }

    /// Whether the output exists already, and is to be kept.
    #[must_use]
    pub fn is_taken(&self) -> bool {
        self.cause.downcast_ref::<crate::Error>().is_some_and(crate::Error::is_taken)
    }

    /// Whether the cause is a budget of memory that is used up.
    #[must_use]
    pub fn is_memory(&self) -> bool {
        let cause = &*self.cause;
        let of_input =
            || cause.downcast_ref::<borehole_text::Error>().is_some_and(borehole_text::Error::is_memory);
        let of_output = || cause.downcast_ref::<io::Error>().and_then(OverBudget::of).is_some();
        let of_file = || cause.downcast_ref::<crate::Error>().is_some_and(crate::Error::is_memory);
        cause.is::<OverBudget>() || of_input() || of_output() || of_file()
    }

    /// The name of the file; empty if there is none.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The way out; `None` if it is obvious, or there is none.
    #[must_use]
    pub fn advice(&self) -> Option<Advice> {
        self.advice.clone().or_else(|| Advice::of(&*self.cause))
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
    /// The cause. Its text is a part of this error's text.
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&*self.cause)
    }
}
