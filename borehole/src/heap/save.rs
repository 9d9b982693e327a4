//! Graphs, written.

use std::io::{BufWriter, Write};
use std::path::Path;

use borehole_heap::{Graph, heapsnapshot, hprof, json, lines, rmem};

use super::{Error, HeapFormat};

/// Writes `graph` to `output`, whose name is for messages.
///
/// # Errors
/// When `output` cannot be written, or graphs are not written as a stream in this format.
pub fn write(
    graph: &dyn Graph,
    format: HeapFormat,
    is_pretty: bool,
    name: &str,
    output: impl Write,
) -> Result<(), Error> {
    let mut output = BufWriter::with_capacity(BUFFER_BYTES, output);
    match format {
        HeapFormat::Rmem => rmem::write(&graph, &mut output),
        HeapFormat::Json => {
            let layout = if is_pretty { json::Layout::Pretty } else { json::Layout::Compact };
            json::write(&graph, layout, &mut output)
        }
        HeapFormat::Lines => lines::write(&graph, &mut output),
        HeapFormat::Hprof => hprof::write(&graph, &mut output),
        HeapFormat::HeapSnapshot => heapsnapshot::write(&graph, &mut output),
        HeapFormat::Rdump | HeapFormat::Core => {
            return Err(Error::new(name, "unsupported output: a graph does not hold the memory itself"));
        }
        HeapFormat::Sqlite => {
            return Err(Error::new(name, "unsupported output: a database needs a file; name one with -o"));
        }
    }
    .map_err(|error| Error::new(name, error))?;
    output.flush().map_err(|error| Error::new(name, error))
}

const BUFFER_BYTES: usize = 1 << 20;

/// Adds `graph` as a run to the database at `path`, which is empty or new if `is_new`. Answers the number of the run.
///
/// # Errors
/// When the database cannot be written.
#[cfg(feature = "sqlite")]
pub fn write_sqlite(graph: &dyn Graph, path: &Path, is_new: bool, created_at: &str) -> Result<i64, Error> {
    use borehole_sql::Sqlite;
    let name = path.display().to_string();
    let opened = if is_new { Sqlite::create(path) } else { Sqlite::open(path) };
    let run = opened.and_then(|mut database| database.add_run(&graph, created_at));
    run.map_err(|error| Error::new(&name, error))
}
