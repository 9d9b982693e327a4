//! Writing of graphs.

use std::io::{self, BufWriter, Write};

use borehole_heap::{Graph, heapsnapshot, hprof, json, lines, rmem};

use super::HeapFormat;
use crate::Error;

const BUFFER_BYTES: usize = 1 << 20;

/// Writes `graph` to `output`, whose name is for messages.
///
/// # Examples
///
/// ```
/// use borehole::heap::{HeapFile, HeapFormat, OpenOptions, write};
///
/// let json = br##"{"context":{"a":{"#node_id":0,"#type":"A","#locations":[]}}}"##;
/// let heap = HeapFile::reader("upload", &json[..])?;
/// let opened = heap.graph(&OpenOptions::default())?;
/// let mut lines = Vec::new();
/// write(&*opened.graph, HeapFormat::Lines, false, "lines", &mut lines)?;
/// assert!(lines.starts_with(br#"{"type":"heap""#));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// If `output` cannot be written, or the format cannot be written as a stream.
pub fn write(
    graph: &dyn Graph,
    format: HeapFormat,
    is_pretty: bool,
    name: &str,
    output: impl Write,
) -> Result<(), Error> {
    let mut output = BufWriter::with_capacity(BUFFER_BYTES, output);
    let written = match format {
        HeapFormat::Rmem => rmem::write(&graph, &mut output),
        HeapFormat::Json => {
            let layout = if is_pretty { json::JsonLayout::Pretty } else { json::JsonLayout::Compact };
            json::write(&graph, layout, &mut output)
        }
        HeapFormat::Lines => lines::write(&graph, &mut output),
        HeapFormat::Hprof => hprof::write(&graph, &mut output),
        HeapFormat::HeapSnapshot => heapsnapshot::write(&graph, &mut output),
        HeapFormat::Rdump | HeapFormat::Core => {
            return Err(refused(name, "unsupported output: a heap graph does not contain the memory itself"));
        }
        HeapFormat::Sqlite | HeapFormat::Postgresql | HeapFormat::Mysql => {
            return Err(refused(
                name,
                "unsupported output: a database cannot be streamed: it needs a file or a server",
            ));
        }
    };
    let flushed = written.and_then(|()| output.flush());
    flushed.map_err(|source| Error::Write { name: name.to_owned(), source })
}

#[cold]
fn refused(name: &str, why: &str) -> Error {
    Error::Write { name: name.to_owned(), source: io::Error::new(io::ErrorKind::Unsupported, why) }
}
