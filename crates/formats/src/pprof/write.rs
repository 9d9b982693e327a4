//! Writes messages to a stream, optionally through gzip.

use std::io::{self, Write};

use borehole_wire::Compression;
use borehole_wire::envelope::GzipWriter;

pub(super) use crate::documents::protobuf::{FieldStream, Message};

/// The stream of a document. Flushing it ends the gzip member.
#[derive(Debug)]
pub(super) enum DocumentStream<W: Write> {
    Bare(W),
    Gzip(Box<GzipWriter<W>>),
}

impl<W: Write> DocumentStream<W> {
    /// Creates the stream of a document in one of the compressions that `go tool pprof` reads.
    pub(super) fn new(stream: W, compression: Compression) -> io::Result<Self> {
        Ok(match compression.among(&[Compression::None, Compression::Gzip])? {
            Compression::None => Self::Bare(stream),
            _ => Self::gzip(stream),
        })
    }

    pub(super) fn gzip(stream: W) -> Self {
        Self::Gzip(Box::new(GzipWriter::new(stream)))
    }
}

impl<W: Write> Write for DocumentStream<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Bare(stream) => stream.write(bytes),
            Self::Gzip(member) => member.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Bare(stream) => stream.flush(),
            Self::Gzip(member) => member.complete()?.flush(),
        }
    }
}
