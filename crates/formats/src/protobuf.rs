//! Messages written in protobuf's wire format. Source: protobuf.dev, "Encoding".

use borehole_wire::put_varint;
#[cfg(any(feature = "pprof", feature = "otlp"))]
use borehole_wire::{put_varint_signed, varint_len};

/// The wire types: the storage of a field's value.
pub(crate) mod wire {
    pub(crate) const VARINT: u64 = 0;
    pub(crate) const FIXED64: u64 = 1;
    pub(crate) const BYTES: u64 = 2;
    #[cfg(any(feature = "pprof", feature = "otlp"))]
    pub(crate) const FIXED32: u64 = 5;
}

/// A message under construction, cleared and reused.
#[derive(Clone, Debug, Default)]
pub(crate) struct Message {
    bytes: Vec<u8>,
}

impl Message {
    #[cfg(any(feature = "pprof", feature = "perfetto"))]
    pub(crate) fn clear(&mut self) -> &mut Self {
        self.bytes.clear();
        self
    }

    /// Appends a number of eight bytes.
    #[cfg(any(feature = "perfetto", feature = "otlp"))]
    pub(crate) fn fixed64(&mut self, field: u32, value: u64) -> &mut Self {
        put_tag(&mut self.bytes, field, wire::FIXED64);
        self.bytes.extend_from_slice(&value.to_le_bytes());
        self
    }

    /// Appends a floating-point number.
    #[cfg(feature = "perfetto")]
    pub(crate) fn double(&mut self, field: u32, value: f64) -> &mut Self {
        self.fixed64(field, value.to_bits())
    }

    /// Appends a number, omitted if it is 0, the format's default.
    pub(crate) fn number(&mut self, field: u32, value: u64) -> &mut Self {
        if value == 0 { self } else { self.explicit(field, value) }
    }

    /// Appends a signed number, omitted if it is 0.
    #[cfg(any(feature = "pprof", feature = "perfetto"))]
    pub(crate) fn signed(&mut self, field: u32, value: i64) -> &mut Self {
        self.number(field, value.cast_unsigned())
    }

    /// Appends a number even if it is 0, where importers distinguish 0 from an absent value.
    pub(crate) fn explicit(&mut self, field: u32, value: u64) -> &mut Self {
        put_tag(&mut self.bytes, field, wire::VARINT);
        put_varint(&mut self.bytes, value);
        self
    }

    /// Appends a packed block of signed numbers.
    #[cfg(any(feature = "pprof", feature = "otlp"))]
    pub(crate) fn packed_signed(&mut self, field: u32, values: impl Iterator<Item = i64> + Clone) {
        let length: usize = values.clone().map(|value| varint_len(value.cast_unsigned())).sum();
        put_tag(&mut self.bytes, field, wire::BYTES);
        put_varint(&mut self.bytes, length as u64);
        values.for_each(|value| put_varint_signed(&mut self.bytes, value));
    }

    /// Appends bytes: a string, a packed block or a message.
    pub(crate) fn bytes(&mut self, field: u32, bytes: &[u8]) -> &mut Self {
        put_bytes(&mut self.bytes, field, bytes);
        self
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// Appends the tag of a field.
pub(crate) fn put_tag(out: &mut Vec<u8>, field: u32, wire_type: u64) {
    put_varint(out, u64::from(field) << 3 | wire_type);
}

/// Appends a field of bytes: a string, a packed block or a message.
pub(crate) fn put_bytes(out: &mut Vec<u8>, field: u32, bytes: &[u8]) {
    put_tag(out, field, wire::BYTES);
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}
