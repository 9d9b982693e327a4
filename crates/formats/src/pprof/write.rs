//! Writes messages to a stream, optionally through gzip.

use std::io::{self, Write};

use borehole_wire::envelope::GzipWriter;

pub(super) use crate::documents::protobuf::{FieldStream, Message};

/// The compression of a file. `go tool pprof` reads both kinds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum FileCompression {
    /// Gzip at the default level, without a time in its header: equal profiles give equal bytes.
    #[default]
    Gzip,
    /// The bare message.
    None,
}

/// The stream of a document. Flushing it ends the gzip member.
#[derive(Debug)]
pub(super) enum DocumentStream<W: Write> {
    Bare(W),
    Gzip(Box<GzipWriter<W>>),
}

impl<W: Write> DocumentStream<W> {
    pub(super) fn new(stream: W, compression: FileCompression) -> Self {
        match compression {
            FileCompression::None => Self::Bare(stream),
            FileCompression::Gzip => Self::Gzip(Box::new(GzipWriter::new(stream))),
        }
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
