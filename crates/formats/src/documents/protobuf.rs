//! Messages written in protobuf's wire format. Source: protobuf.dev, "Encoding".

use std::io::{self, Write};

use borehole_wire::{put_varint, varint_len};

/// The wire types: the storage of a field's value.
pub(crate) mod wire {
    pub(crate) const VARINT: u64 = 0;
    pub(crate) const FIXED64: u64 = 1;
    pub(crate) const BYTES: u64 = 2;
    pub(crate) const FIXED32: u64 = 5;
}

/// A message under construction, cleared and reused.
#[derive(Clone, Debug, Default)]
pub(crate) struct Message {
    bytes: Vec<u8>,
}

impl Message {
    pub(crate) fn clear(&mut self) -> &mut Self {
        self.bytes.clear();
        self
    }

    /// Appends a number of eight bytes.
    pub(crate) fn fixed64(&mut self, field: u32, value: u64) -> &mut Self {
        put_fixed64(&mut self.bytes, field, value);
        self
    }

    /// Appends a floating-point number.
    pub(crate) fn double(&mut self, field: u32, value: f64) -> &mut Self {
        self.fixed64(field, value.to_bits())
    }

    /// Appends a number, omitted if it is 0, the format's default.
    pub(crate) fn number(&mut self, field: u32, value: u64) -> &mut Self {
        if value == 0 { self } else { self.explicit(field, value) }
    }

    /// Appends a number even if it is 0, where importers distinguish 0 from an absent value.
    pub(crate) fn explicit(&mut self, field: u32, value: u64) -> &mut Self {
        put_number(&mut self.bytes, field, value);
        self
    }

    /// Appends a packed block of numbers.
    pub(crate) fn packed(&mut self, field: u32, values: impl Iterator<Item = u64> + Clone) -> &mut Self {
        let length: usize = values.clone().map(varint_len).sum();
        put_length(&mut self.bytes, field, length as u64);
        values.for_each(|value| put_varint(&mut self.bytes, value));
        self
    }

    /// Appends bytes: a string, a packed block or a message.
    pub(crate) fn bytes(&mut self, field: u32, bytes: &[u8]) -> &mut Self {
        put_bytes(&mut self.bytes, field, bytes);
        self
    }

    /// Appends fields that are encoded already.
    pub(crate) fn fields(&mut self, bytes: &[u8]) -> &mut Self {
        self.bytes.extend_from_slice(bytes);
        self
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// The fields of an outermost message on their way to a stream.
#[derive(Debug)]
pub(crate) struct FieldStream<W> {
    buffer: Vec<u8>,
    stream: W,
}

impl<W: Write> FieldStream<W> {
    /// The number of bytes to collect before writing to the stream: few system calls, little memory.
    const BUFFER_BYTES: usize = 64 << 10;

    pub(crate) const fn new(stream: W) -> Self {
        Self { buffer: Vec::new(), stream }
    }

    /// Writes a number, omitted if it is 0.
    pub(crate) fn number(&mut self, field: u32, value: u64) -> io::Result<()> {
        if value != 0 {
            put_number(&mut self.buffer, field, value);
        }
        self.spill()
    }

    pub(crate) fn bytes(&mut self, field: u32, bytes: &[u8]) -> io::Result<()> {
        put_bytes(&mut self.buffer, field, bytes);
        self.spill()
    }

    pub(crate) fn message(&mut self, field: u32, message: &Message) -> io::Result<()> {
        self.bytes(field, message.as_bytes())
    }

    /// Begins a field of `length` bytes.
    pub(crate) fn begin(&mut self, field: u32, length: u64) {
        put_length(&mut self.buffer, field, length);
    }

    /// The place for the contents of a field that has begun.
    pub(crate) const fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.buffer
    }

    /// Writes the collected bytes, if they are enough.
    #[inline]
    pub(crate) fn spill(&mut self) -> io::Result<()> {
        if self.buffer.len() < Self::BUFFER_BYTES { Ok(()) } else { self.hand_over() }
    }

    /// Writes the collected bytes, and flushes the stream.
    pub(crate) fn finish(&mut self) -> io::Result<()> {
        self.hand_over()?;
        self.stream.flush()
    }

    fn hand_over(&mut self) -> io::Result<()> {
        self.stream.write_all(&self.buffer)?;
        self.buffer.clear();
        Ok(())
    }
}

/// Appends the tag of a field.
pub(crate) fn put_tag(out: &mut Vec<u8>, field: u32, wire_type: u64) {
    put_varint(out, u64::from(field) << 3 | wire_type);
}

/// Appends a field of a number.
pub(crate) fn put_number(out: &mut Vec<u8>, field: u32, value: u64) {
    put_tag(out, field, wire::VARINT);
    put_varint(out, value);
}

/// Appends a field of eight bytes.
pub(crate) fn put_fixed64(out: &mut Vec<u8>, field: u32, value: u64) {
    put_tag(out, field, wire::FIXED64);
    out.extend_from_slice(&value.to_le_bytes());
}

/// Appends a field of bytes: a string, a packed block or a message.
pub(crate) fn put_bytes(out: &mut Vec<u8>, field: u32, bytes: &[u8]) {
    put_length(out, field, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// The length of a field of `length` bytes with its tag, for field numbers below 16.
pub(crate) fn field_length(length: u64) -> u64 {
    1 + varint_len(length) as u64 + length
}

/// Appends the tag and the length of a field of bytes.
fn put_length(out: &mut Vec<u8>, field: u32, length: u64) {
    put_tag(out, field, wire::BYTES);
    put_varint(out, length);
}
