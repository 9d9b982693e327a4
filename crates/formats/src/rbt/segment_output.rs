//! The output of one segment: raw or a gzip member of its own.

use std::io::{self, Write};

use borehole_wire::envelope::GzipWriter;

/// Whether segments are compressed, each as one gzip member.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SegmentCompression {
    /// Raw: best for live capture, tailing and recovery.
    #[default]
    None,
    /// Gzip at the default level: best for archives and transfer.
    Gzip,
}

/// The stream of one segment. If it is dropped before completion, its member stays without an end.
pub struct SegmentOutput<W: Write>(OutputForm<W>);

enum OutputForm<W: Write> {
    Plain(W),
    Gzip(Box<GzipWriter<W>>),
}

impl<W: Write> SegmentOutput<W> {
    /// Creates an output of a segment to `stream`.
    pub fn new(stream: W, compression: SegmentCompression) -> Self {
        Self(match compression {
            SegmentCompression::None => OutputForm::Plain(stream),
            SegmentCompression::Gzip => OutputForm::Gzip(Box::new(GzipWriter::new(stream))),
        })
    }

    fn stream(&mut self) -> &mut dyn Write {
        match &mut self.0 {
            OutputForm::Plain(stream) => stream,
            OutputForm::Gzip(member) => member,
        }
    }

    /// Ends the segment's member, if it is one, writes all buffered bytes and returns the stream.
    ///
    /// # Errors
    /// If the rest cannot be written.
    pub fn complete(self) -> io::Result<W> {
        let mut stream = match self.0 {
            OutputForm::Plain(stream) => stream,
            OutputForm::Gzip(mut member) => member.complete()?,
        };
        stream.flush()?;
        Ok(stream)
    }
}

impl<W: Write> Write for SegmentOutput<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream().flush()
    }
}
