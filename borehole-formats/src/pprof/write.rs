//! Messages to bytes, and bytes to a stream, through gzip if that is asked for.

use std::io::{self, Write};

use borehole_wire::{put_varint, put_varint_signed, varint_len};

use super::layout::wire;
use crate::gzip::GzipWriter;

/// Whether a file is compressed. `go tool pprof` reads both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compression {
    /// Gzip at the default level, without a time in its header: equal profiles give equal bytes.
    #[default]
    Gzip,
    /// The bare message.
    None,
}

/// A message under construction. Cleared and used again.
#[derive(Clone, Debug, Default)]
pub(super) struct Message {
    bytes: Vec<u8>,
}

impl Message {
    pub(super) fn clear(&mut self) -> &mut Self {
        self.bytes.clear();
        self
    }

    /// A number, left out when it is 0, as the format's default.
    pub(super) fn number(&mut self, field: u32, value: u64) -> &mut Self {
        if value == 0 { self } else { self.explicit(field, value) }
    }

    /// A signed number, left out when it is 0.
    pub(super) fn signed(&mut self, field: u32, value: i64) -> &mut Self {
        self.number(field, value.cast_unsigned())
    }

    /// A number that is written also when it is 0, where "0" and "absent" differ for the importer.
    pub(super) fn explicit(&mut self, field: u32, value: u64) -> &mut Self {
        put_tag(&mut self.bytes, field, wire::VARINT);
        put_varint(&mut self.bytes, value);
        self
    }

    /// A packed block of signed numbers.
    pub(super) fn packed_signed(&mut self, field: u32, values: impl Iterator<Item = i64> + Clone) {
        let length: usize = values.clone().map(|value| varint_len(value.cast_unsigned())).sum();
        put_tag(&mut self.bytes, field, wire::BYTES);
        put_varint(&mut self.bytes, length as u64);
        values.for_each(|value| put_varint_signed(&mut self.bytes, value));
    }

    /// Bytes: a string, a packed block, a message.
    pub(super) fn bytes(&mut self, field: u32, bytes: &[u8]) -> &mut Self {
        put_tag(&mut self.bytes, field, wire::BYTES);
        put_varint(&mut self.bytes, bytes.len() as u64);
        self.bytes.extend_from_slice(bytes);
        self
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }
}

fn put_tag(out: &mut Vec<u8>, field: u32, wire_type: u64) {
    put_varint(out, u64::from(field) << 3 | wire_type);
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
    /// Bytes that are collected before the stream sees them: few system calls, little memory.
    const BUFFER_BYTES: usize = 64 << 10;

    pub(super) fn new(stream: W, compression: Compression) -> Self {
        let stream = match compression {
            Compression::None => Stream::Bare(stream),
            Compression::Gzip => Stream::Gzip(Box::new(GzipWriter::new(stream))),
        };
        Self { buffer: Vec::new(), stream }
    }

    pub(super) fn bytes(&mut self, field: u32, bytes: &[u8]) -> io::Result<()> {
        put_tag(&mut self.buffer, field, wire::BYTES);
        put_varint(&mut self.buffer, bytes.len() as u64);
        self.buffer.extend_from_slice(bytes);
        self.spill(Self::BUFFER_BYTES)
    }

    pub(super) fn message(&mut self, field: u32, message: &Message) -> io::Result<()> {
        self.bytes(field, message.as_bytes())
    }

    /// A number, left out when it is 0.
    pub(super) fn signed(&mut self, field: u32, value: i64) -> io::Result<()> {
        if value != 0 {
            put_tag(&mut self.buffer, field, wire::VARINT);
            put_varint_signed(&mut self.buffer, value);
        }
        self.spill(Self::BUFFER_BYTES)
    }

    /// Writes what is outstanding and ends the stream.
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
