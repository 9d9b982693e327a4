//! JSON documents, read as a stream within a limit of memory.

use std::cell::Cell;
use std::io::{self, BufRead, Read};

use borehole_memory::OverBudget;
use serde::de::DeserializeSeed;

use crate::{Error, ErrorKind, Limits, Position};

/// The memory of what is made of a document while it is parsed: the parser says how much that is, and the input fails once that
/// is too much.
#[derive(Debug)]
pub(crate) struct JsonMemory {
    limits: Limits,
    held: Cell<usize>,
    over: Cell<Option<OverBudget>>,
    /// The bytes that a value takes, if they are counted by the commas between values.
    value_bytes: usize,
    /// Whether most of the document is texts that are kept.
    keeps_texts: bool,
}

impl JsonMemory {
    /// Of a parser that states what it holds.
    pub(crate) const fn new(limits: Limits) -> Self {
        Self { limits, held: Cell::new(0), over: Cell::new(None), value_bytes: 0, keeps_texts: false }
    }

    /// Of a parser that keeps nearly all values, each in about `value_bytes`, and so need not state anything.
    pub(crate) const fn of_values(limits: Limits, value_bytes: usize) -> Self {
        Self { value_bytes, ..Self::new(limits) }
    }

    /// Of a parser that keeps nearly all values, each in about `value_bytes`, and all texts besides.
    pub(crate) const fn of_texts(limits: Limits, value_bytes: usize) -> Self {
        Self { keeps_texts: true, ..Self::of_values(limits, value_bytes) }
    }

    /// Counts the values that end in `text`. Texts, which may hold commas, are short.
    fn count(&self, text: &[u8]) {
        if self.keeps_texts {
            self.add(text.len());
        }
        if self.value_bytes > 0 {
            self.add(memchr::memchr_iter(b',', text).count() * self.value_bytes);
        }
    }

    /// States the bytes that are held now.
    pub(crate) fn state(&self, held: usize) {
        self.held.set(held);
    }

    /// Adds to the bytes that are held.
    pub(crate) fn add(&self, bytes: usize) {
        self.held.set(self.held.get().saturating_add(bytes));
    }

    fn check(&self) -> io::Result<()> {
        let checked = self.limits.check(self.held.get());
        checked.inspect_err(|&over| self.over.set(Some(over))).map_err(io::Error::from)
    }
}

/// An input that fails when the document takes more memory than allowed. The parser asks for single bytes, so they come from a copy
/// of the next ones, and what is counted is counted by the chunk.
struct Limited<'m, R> {
    input: R,
    memory: &'m JsonMemory,
    /// The next bytes of the input, which are not consumed there before they are all read.
    chunk: [u8; CHUNK_BYTES],
    length: usize,
    /// The number of bytes of the chunk that were read.
    at: usize,
    /// The number of lines that ended before the chunk.
    lines: u64,
}

/// The number of bytes between checks: some thousand values.
const CHUNK_BYTES: usize = 4 << 10;

impl<'m, R: BufRead> Limited<'m, R> {
    const fn new(input: R, memory: &'m JsonMemory) -> Self {
        Self { input, memory, chunk: [0; CHUNK_BYTES], length: 0, at: 0, lines: 0 }
    }

    /// Counts and consumes what was read of the chunk.
    fn retire(&mut self) {
        let read = &self.chunk[..self.at];
        self.lines += memchr::memchr_iter(b'\n', read).count() as u64;
        self.memory.count(read);
        self.input.consume(self.at);
        (self.at, self.length) = (0, 0);
    }

    #[cold]
    fn next_chunk(&mut self) -> io::Result<()> {
        self.retire();
        self.memory.check()?;
        let next = self.input.fill_buf()?;
        self.length = next.len().min(CHUNK_BYTES);
        self.chunk[..self.length].copy_from_slice(&next[..self.length]);
        Ok(())
    }
}

impl<R: BufRead> Read for Limited<'_, R> {
    #[inline]
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Some(byte) = buffer.first_mut() else { return Ok(0) };
        if self.at == self.length {
            self.next_chunk()?;
        }
        let Some(&next) = self.chunk[..self.length].get(self.at) else { return Ok(0) };
        *byte = next;
        self.at += 1;
        Ok(1)
    }
}

/// Reads a document with nothing after it.
///
/// # Errors
/// If it takes more memory than allowed, is cut off, or is rejected by `seed`.
pub(crate) fn parse<'de, S: DeserializeSeed<'de>>(
    format: &'static str,
    input: impl BufRead,
    memory: &JsonMemory,
    seed: S,
) -> Result<S::Value, Error> {
    let mut limited = Limited::new(input, memory);
    let mut deserializer = serde_json::Deserializer::from_reader(&mut limited);
    let read = seed.deserialize(&mut deserializer).and_then(|read| deserializer.end().map(|()| read));
    read.map_err(|error| json_error(format, error, 0, memory.over.get()))
}

/// Reads one object, which others may follow. `lines` is the number of lines that have ended before; after an error, it is
/// unspecified how much of the object has been read.
///
/// # Errors
/// If it takes more memory than allowed, is cut off, or is rejected by `seed`.
pub(crate) fn parse_next<'de, S: DeserializeSeed<'de>>(
    format: &'static str,
    input: impl BufRead,
    memory: &JsonMemory,
    lines: &mut u64,
    seed: S,
) -> Result<S::Value, Error> {
    let mut limited = Limited::new(input, memory);
    let read = seed.deserialize(&mut serde_json::Deserializer::from_reader(&mut limited));
    limited.retire();
    let before = *lines;
    *lines += limited.lines;
    read.map_err(|error| json_error(format, error, before, memory.over.get()))
}

fn json_error(format: &'static str, error: serde_json::Error, lines: u64, over: Option<OverBudget>) -> Error {
    let position = Position::Line(lines + error.line() as u64);
    if let Some(over) = over {
        return Error::memory(format, position, over);
    }
    let kind = match error.classify() {
        serde_json::error::Category::Io => return Error::io(format, position, error.into()),
        serde_json::error::Category::Eof => ErrorKind::Truncated,
        _ => ErrorKind::Malformed,
    };
    let (text, tail) = (error.to_string(), format!(" at line {} column {}", error.line(), error.column()));
    let message = text.strip_suffix(&tail).unwrap_or(&text);
    let sort = if kind == ErrorKind::Truncated { "truncated: " } else { "" };
    Error::new(kind, format, position, format!("{sort}{message}, column {}", error.column()))
}
