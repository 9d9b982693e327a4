//! Writes messages to a stream, optionally through gzip.

use std::io::{self, Write};

use borehole_wire::put_varint_signed;

use crate::envelope::GzipWriter;
pub(super) use crate::protobuf::Message;
use crate::protobuf::{put_bytes, put_tag, wire};

/// The compression of a file. `go tool pprof` reads both kinds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compression {
    /// Gzip at the default level, without a time in its header: equal profiles give equal bytes.
    #[default]
    Gzip,
    /// The bare message.
    None,
}

/// The stream of a document's outermost fields.
#[derive(Debug)]
pub(super) struct Output<W: Write> {
    buffer: Vec<u8>,
    stream: Stream<W>,
}

#[derive(Debug)]
enum Stream<W: Write> {
    Bare(W),
    Gzip(Box<GzipWriter<W>>),
}

impl<W: Write> Output<W> {
    /// The number of bytes to collect before writing to the stream: few system calls, little memory.
    const BUFFER_BYTES: usize = 64 << 10;

    pub(super) fn new(stream: W, compression: Compression) -> Self {
        let stream = match compression {
            Compression::None => Stream::Bare(stream),
            Compression::Gzip => Stream::Gzip(Box::new(GzipWriter::new(stream))),
        };
        Self { buffer: Vec::new(), stream }
    }

    pub(super) fn bytes(&mut self, field: u32, bytes: &[u8]) -> io::Result<()> {
        put_bytes(&mut self.buffer, field, bytes);
        self.spill(Self::BUFFER_BYTES)
    }

    pub(super) fn message(&mut self, field: u32, message: &Message) -> io::Result<()> {
        self.bytes(field, message.as_bytes())
    }

    /// Writes a signed number, omitted if it is 0.
    pub(super) fn signed(&mut self, field: u32, value: i64) -> io::Result<()> {
        if value != 0 {
            put_tag(&mut self.buffer, field, wire::VARINT);
            put_varint_signed(&mut self.buffer, value);
        }
        self.spill(Self::BUFFER_BYTES)
    }

    /// Writes the pending bytes and ends the stream.
    pub(super) fn finish(&mut self) -> io::Result<()> {
        self.spill(0)?;
        match &mut self.stream {
            Stream::Bare(stream) => stream.flush(),
            Stream::Gzip(member) => member.complete()?.flush(),
        }
    }

    fn spill(&mut self, threshold: usize) -> io::Result<()> {
        if self.buffer.len() < threshold {
            return Ok(());
        }
        match &mut self.stream {
            Stream::Bare(stream) => stream.write_all(&self.buffer)?,
            Stream::Gzip(member) => member.write_all(&self.buffer)?,
        }
        self.buffer.clear();
        Ok(())
    }
}
