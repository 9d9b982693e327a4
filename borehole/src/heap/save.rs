//! Graphs, written.

use std::io::Write;
use std::path::Path;

use borehole_heap::{Graph, rmem};

use super::{Error, HeapFormat};
use crate::{Existing, Output};

/// Writes `graph` to `output`, which stays to be completed.
///
/// # Errors
/// When `output` cannot be written, or the format is not one that graphs are written in as a stream.
pub fn write(graph: &dyn Graph, format: HeapFormat, output: &mut Output) -> Result<(), Error> {
    let name = output.name().to_owned();
    let refused = |error| Error::new(&name, error);
    match format {
        HeapFormat::Rmem => rmem::write(graph, &mut *output).map_err(refused),
        HeapFormat::Rdump | HeapFormat::Core => Err(Error::new(&name, "a graph does not hold the memory itself")),
        HeapFormat::Sqlite => Err(Error::new(&name, "a database is a file: name one with -o")),
    }
}
