//! The output of one segment: raw or a gzip member of its own.

use std::io::{self, Write};

use borehole_wire::Compression;
use borehole_wire::envelope::CompressedWriter;

/// Creates the output of one segment to `stream`: raw, which is best for live capture, tailing and recovery, or a gzip member,
/// which is best for archives and transfer. If it is dropped before completion, its member stays without an end.
///
/// # Errors
/// If the compression is neither of them. Other readers of the format know no other.
pub fn segment_output<W: Write>(stream: W, compression: Compression) -> io::Result<CompressedWriter<W>> {
    CompressedWriter::new(stream, compression.among(&[Compression::None, Compression::Gzip])?)
}
