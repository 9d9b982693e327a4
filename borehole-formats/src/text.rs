//! Lines of text formats, with their numbers and a bound on their length.

use std::io::{self, BufRead};

use crate::{Error, ErrorKind, Limits, Position};

/// Reads an input line by line into one buffer.
pub(crate) struct Lines<R> {
    input: R,
    format: &'static str,
    buffer: Vec<u8>,
    number: u64,
    offset: u64,
    next_offset: u64,
    limit: usize,
}

impl<R: BufRead> Lines<R> {
    pub(crate) const fn new(input: R, format: &'static str, limits: &Limits) -> Self {
        let limit = limits.line_bytes;
        Self { input, format, buffer: Vec::new(), number: 0, offset: 0, next_offset: 0, limit }
    }

    /// The next line without its line feed; `None` at the end.
    ///
    /// # Errors
    /// When the input cannot be read, or a line is longer than the limit.
    pub(crate) fn next_line(&mut self) -> Result<Option<&[u8]>, Error> {
        self.buffer.clear();
        self.number += 1;
        self.offset = self.next_offset;
        loop {
            let chunk = match self.input.fill_buf() {
                Ok(chunk) => chunk,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(Error::io(self.format, Position::Line(self.number), error)),
            };
            if chunk.is_empty() {
                return Ok((self.next_offset > self.offset).then_some(&self.buffer));
            }
            let feed = memchr::memchr(b'\n', chunk);
            let taken = feed.unwrap_or(chunk.len());
            if self.buffer.len().saturating_add(taken) > self.limit {
                return Err(self.too_long());
            }
            self.buffer.extend_from_slice(&chunk[..taken]);
            let consumed = taken + usize::from(feed.is_some());
            self.input.consume(consumed);
            self.next_offset += consumed as u64;
            if feed.is_some() {
                return Ok(Some(&self.buffer));
            }
        }
    }

    /// The number of the line read last, 1-based.
    pub(crate) const fn number(&self) -> u64 {
        self.number
    }

    /// The byte offset of the line read last.
    pub(crate) const fn offset(&self) -> u64 {
        self.offset
    }

    #[cold]
    fn too_long(&self) -> Error {
        let message = format!("line too long: expected at most {} bytes", self.limit);
        Error::new(ErrorKind::Limit, self.format, Position::Line(self.number), message)
    }
}
