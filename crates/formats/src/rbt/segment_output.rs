//! The output of one segment: raw or a gzip member of its own.

use std::io::{self, Write};

use crate::envelope::GzipWriter;

/// Whether segments are compressed, each as one gzip member.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compression {
    /// Raw: best for live capture, tailing and recovery.
    #[default]
    None,
    /// Gzip at the default level: best for archives and transfer.
    Gzip,
}

/// The stream of one segment. If it is dropped before completion, its member stays without an end.
pub struct SegmentOutput<W: Write>(Form<W>);

enum Form<W: Write> {
    Plain(W),
    Gzip(Box<GzipWriter<W>>),
}

impl<W: Write> SegmentOutput<W> {
    /// Creates an output of a segment to `stream`.
    pub fn new(stream: W, compression: Compression) -> Self {
        Self(match compression {
            Compression::None => Form::Plain(stream),
            Compression::Gzip => Form::Gzip(Box::new(GzipWriter::new(stream))),
        })
    }

    /// Ends the segment's member, if it is one, writes all buffered bytes and returns the stream.
    ///
    /// # Errors
    /// If the rest cannot be written.
    pub fn complete(self) -> io::Result<W> {
        let mut stream = match self.0 {
            Form::Plain(stream) => stream,
            Form::Gzip(mut member) => member.complete()?,
        };
        stream.flush()?;
        Ok(stream)
    }
}

impl<W: Write> Write for SegmentOutput<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.0 {
            Form::Plain(stream) => stream.write(bytes),
            Form::Gzip(member) => member.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.0 {
            Form::Plain(stream) => stream.flush(),
            Form::Gzip(member) => member.flush(),
        }
    }
}
