//! Analysis of the memory in a dump.

use borehole_heap::{GraphBuilder, GraphStorage, HeapGraph};
use borehole_php::{Analysis, AnalyzeOptions};
use borehole_process::Dump;

use super::{Error, MemoryLimitError};

/// The memory that any analysis may take, in bytes: to do with less would save little beside the command itself.
const LEAST_GOAL_BYTES: usize = 64 << 20;

/// Builds the graph of the heap whose memory is in `dump`, which is freed as soon as it has been walked.
///
/// # Examples
///
/// ```
/// use std::path::Path;
/// use borehole::heap::{AnalyzeOptions, Dump, Graph as _, analyze};
///
/// /// The number of values in the heap of a dump.
/// fn values(dump: &Path) -> Result<usize, Box<dyn std::error::Error>> {
///     let dump = Dump::read(std::fs::File::open(dump)?)?;
///     let (graph, analysis) = analyze(dump, &AnalyzeOptions::default())?;
///     assert!(analysis.doubt.is_none(), "all blocks are found");
///     Ok(graph.counts().nodes)
/// }
/// assert!(values(Path::new("missing.rdump")).is_err());
/// ```
///
/// # Errors
/// If the process does not run PHP, or an unsupported version.
pub fn analyze(dump: Dump, options: &AnalyzeOptions<'_>) -> Result<(HeapGraph, Analysis), Error> {
    analyze_as(dump, options, GraphStorage::Plain)
}

/// Like [`analyze`], with a graph that is stored like this: a packed one takes less memory, and is read in order, as by
/// [`write()`](super::write()) to `.rmem`.
///
/// # Examples
///
/// ```
/// use std::fs::File;
/// use std::path::Path;
/// use borehole::heap::{AnalyzeOptions, Dump, GraphStorage, HeapFormat, analyze_as, write};
///
/// /// Turns a dump into a graph.
/// fn convert(dump: &Path, graph: &Path) -> Result<(), Box<dyn std::error::Error>> {
///     let dump = Dump::read(File::open(dump)?)?;
///     let (found, _) = analyze_as(dump, &AnalyzeOptions::default(), GraphStorage::Packed)?;
///     write(&found, HeapFormat::Rmem, false, "graph", File::create(graph)?)?;
///     Ok(())
/// }
/// assert!(convert(Path::new("missing.rdump"), Path::new("graph.rmem")).is_err());
/// ```
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
