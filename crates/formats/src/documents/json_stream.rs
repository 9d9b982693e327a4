//! JSON written to a stream piece by piece.

use std::io::{self, Write};

use borehole_text::put_decimal;

use super::chains::{ChainEntry, EntryChain, Pull, SampleSpool};

/// A document that is being written to a stream.
#[derive(Debug)]
pub(crate) struct JsonStream<W> {
    buffer: Vec<u8>,
    stream: W,
}

impl<W: Write> JsonStream<W> {
    /// The number of bytes to collect before writing to the stream.
    const BUFFER_BYTES: usize = 64 << 10;

    pub(crate) const fn new(stream: W) -> Self {
        Self { buffer: Vec::new(), stream }
    }

    /// Appends JSON text unchanged.
    #[inline]
    pub(crate) fn raw(&mut self, json: &str) -> &mut Self {
        self.buffer.extend_from_slice(json.as_bytes());
        self
    }

    /// Appends JSON bytes unchanged.
    #[inline]
    pub(crate) fn bytes(&mut self, json: &[u8]) -> &mut Self {
        self.buffer.extend_from_slice(json);
        self
    }

    #[inline]
    pub(crate) fn number(&mut self, value: u64) -> &mut Self {
        put_decimal(&mut self.buffer, value);
        self
    }

    pub(crate) fn signed(&mut self, value: i128) -> &mut Self {
        self.raw(&value.to_string())
    }

    pub(crate) fn string(&mut self, text: &str) -> &mut Self {
        serde_json::to_writer(&mut self.buffer, text).expect("a string is JSON, and a vector takes it");
        self
    }

    /// Writes items with commas between them.
    #[inline]
    pub(crate) fn list<T>(
        &mut self,
        items: impl IntoIterator<Item = T>,
        mut put: impl FnMut(&mut Self, T),
    ) -> io::Result<()> {
        let mut separator = "";
        for item in items {
            put(self.raw(std::mem::replace(&mut separator, ",")), item);
            self.spill()?;
        }
        Ok(())
    }

    /// Writes the entries of a chain with commas between them.
    #[inline]
    pub(crate) fn entries(
        &mut self,
        spool: &mut SampleSpool,
        chain: &EntryChain,
        mut put: impl FnMut(&mut Self, ChainEntry),
    ) -> io::Result<()> {
        let (mut pull, mut separator) = (Pull::of(chain), "");
        while let Some(entry) = spool.pull(&mut pull)? {
            put(self.raw(std::mem::replace(&mut separator, ",")), entry);
            self.spill()?;
        }
        Ok(())
    }

    /// Writes the collected bytes, if they are enough.
    #[inline]
    pub(crate) fn spill(&mut self) -> io::Result<()> {
        if self.buffer.len() < Self::BUFFER_BYTES { Ok(()) } else { self.hand_over() }
    }

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
