//! Lines of text formats, with their numbers and a limit on their length.
//!
//! A line that is entirely in the input's own buffer is lent from there; only a line that straddles two fillings of the
//! buffer is copied.

use std::io::{self, BufRead, Read as _};
use std::mem;

use crate::{Error, ErrorKind, Limits, Position};

/// Reads an input line by line.
pub(crate) struct Lines<R> {
    input: R,
    format: &'static str,
    /// A line that straddles two fillings of the input's buffer.
    gathered: Vec<u8>,
    /// The number of bytes of the input's buffer lent out, to be consumed before the next line.
    lent: usize,
    number: u64,
    offset: u64,
    next_offset: u64,
    limit: usize,
    is_terminated: bool,
}

impl<R: BufRead> Lines<R> {
    pub(crate) const fn new(input: R, format: &'static str, limits: &Limits) -> Self {
        Self {
            input,
            format,
            gathered: Vec::new(),
            lent: 0,
            number: 0,
            offset: 0,
            next_offset: 0,
            limit: limits.line_bytes,
            is_terminated: false,
        }
    }

    /// The next line without its line feed; `None` at the end.
    ///
    /// # Errors
    /// If the input cannot be read, or a line exceeds the limit.
    pub(crate) fn next_line(&mut self) -> Result<Option<&[u8]>, Error> {
        self.input.consume(mem::take(&mut self.lent));
        self.number += 1;
        self.offset = self.next_offset;
        let Some(length) = memchr::memchr(b'\n', self.fill()?) else { return self.gather() };
        self.check(length)?;
        self.is_terminated = true;
        self.lent = length + 1;
        self.next_offset += self.lent as u64;
        Ok(self.fill()?.get(..length))
    }

    /// The number of the last line read, 1-based.
    pub(crate) const fn number(&self) -> u64 {
        self.number
    }

    /// The byte offset of the last line read.
    pub(crate) const fn offset(&self) -> u64 {
        self.offset
    }

    /// Whether the last line read ended with a line feed. The last line of an input that was cut off does not.
    pub(crate) const fn is_terminated(&self) -> bool {
        self.is_terminated
    }

    /// Reads a line whose beginning only is in the input's buffer.
    fn gather(&mut self) -> Result<Option<&[u8]>, Error> {
        self.gathered.clear();
        self.is_terminated = false;
        while !self.is_terminated {
            let taken = self.gather_chunk()?;
            if taken == 0 {
                return Ok((self.next_offset > self.offset).then_some(&self.gathered));
            }
            self.input.consume(taken);
            self.next_offset += taken as u64;
        }
        Ok(Some(&self.gathered))
    }

    /// Adds the buffer's part of the line to the gathered line; returns the number of buffer bytes used.
    fn gather_chunk(&mut self) -> Result<usize, Error> {
        self.fill()?;
        let chunk = self.input.fill_buf().map_err(|error| io_error(self.format, self.number, error))?;
        let feed = memchr::memchr(b'\n', chunk);
        let taken = feed.unwrap_or(chunk.len());
        if self.gathered.len().saturating_add(taken) > self.limit {
            return Err(self.too_long());
        }
        self.gathered.extend_from_slice(&chunk[..taken]);
        self.is_terminated = feed.is_some();
        Ok(taken + usize::from(feed.is_some()))
    }

    /// The contents of the input's buffer; empty at the end of the input.
    fn fill(&mut self) -> Result<&[u8], Error> {
        loop {
            match self.input.fill_buf() {
                Ok(_) => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(io_error(self.format, self.number, error)),
            }
        }
        // This asks for the buffer again, because a loop cannot lend what it borrowed; a filled buffer is not read
        // again.
        self.input.fill_buf().map_err(|error| io_error(self.format, self.number, error))
    }

    fn check(&self, length: usize) -> Result<(), Error> {
        if length > self.limit { Err(self.too_long()) } else { Ok(()) }
    }

    #[cold]
    fn too_long(&self) -> Error {
        let message = format!("line too long: expected at most {} bytes", self.limit);
        Error::new(ErrorKind::Limit, self.format, Position::Line(self.number), message)
    }
}

#[cold]
fn io_error(format: &'static str, number: u64, error: io::Error) -> Error {
    Error::io(format, Position::Line(number), error)
}

/// The first `bytes` of an input, by which its form is told, and the rest.
///
/// # Errors
/// If the input cannot be read.
pub(crate) fn head_of<R: BufRead>(mut input: R, bytes: usize) -> io::Result<(Vec<u8>, R)> {
    let mut head = Vec::new();
    input.by_ref().take(bytes as u64).read_to_end(&mut head)?;
    Ok((head, input))
}

/// A line for a message: its beginning, with invalid UTF-8 replaced.
#[cold]
pub(crate) fn excerpt(line: &[u8]) -> String {
    const SHOWN_CHARS: usize = 80;
    let text = String::from_utf8_lossy(&line[..line.len().min(SHOWN_CHARS * 4)]);
    let mut shown: String = text.chars().take(SHOWN_CHARS).map(printable).collect();
    if shown.len() < line.len() {
        shown.push('…');
    }
    shown
}

/// The length of the common prefix of two texts in bytes.
pub(crate) fn common_prefix(one: &[u8], other: &[u8]) -> usize {
    const CHUNK: usize = 16;
    let chunks = one.as_chunks::<CHUNK>().0.iter().zip(other.as_chunks::<CHUNK>().0);
    let whole = CHUNK * chunks.take_while(|(one, other)| one == other).count();
    let rest = one[whole..].iter().zip(&other[whole..]);
    whole + rest.take_while(|(one, other)| one == other).count()
}

fn printable(c: char) -> char {
    if c.is_control() { char::REPLACEMENT_CHARACTER } else { c }
}

#[cfg(test)]
mod tests {
    use std::io::{BufReader, Read};

    use super::*;

    fn lines_with_buffer(text: &[u8], capacity: usize) -> Vec<(u64, u64, Vec<u8>)> {
        let input = BufReader::with_capacity(capacity, text);
        let mut lines = Lines::new(input, "text", &Limits::default());
        let mut all = Vec::new();
        while let Some(line) = lines.next_line().unwrap() {
            let line = line.to_vec();
            all.push((lines.number(), lines.offset(), line));
        }
        all
    }

    #[test]
    fn lines_do_not_depend_on_the_buffer_size() {
        let text = b"one\n\nthree is long\r\nlast";
        let expected = [(1, 0, &b"one"[..]), (2, 4, b""), (3, 5, b"three is long\r"), (4, 20, b"last")];
        for capacity in 1..32 {
            let lines = lines_with_buffer(text, capacity);
            let lines: Vec<_> = lines.iter().map(|(number, at, line)| (*number, *at, &line[..])).collect();
            assert_eq!(lines, expected, "buffer of {capacity}");
        }
    }

    #[test]
    fn a_whole_line_is_lent_not_copied() {
        let text = b"first\nsecond\n";
        let mut lines = Lines::new(&text[..], "text", &Limits::default());
        let line = lines.next_line().unwrap().unwrap();
        assert_eq!(line.as_ptr(), text.as_ptr());
    }

    #[test]
    fn the_last_line_says_whether_it_ended() {
        let mut lines = Lines::new(&b"a\nb"[..], "text", &Limits::default());
        lines.next_line().unwrap();
        assert!(lines.is_terminated());
        lines.next_line().unwrap();
        assert!(!lines.is_terminated());
    }

    #[test]
    fn a_line_beyond_the_limit_is_rejected_in_both_ways_of_reading() {
        let limits = Limits { line_bytes: 3, ..Limits::default() };
        for capacity in [2, 100] {
            let input = BufReader::with_capacity(capacity, &b"abc\nabcd\n"[..]);
            let mut lines = Lines::new(input, "text", &limits);
            assert_eq!(lines.next_line().unwrap(), Some(&b"abc"[..]));
            let error = lines.next_line().unwrap_err();
            assert!(error.is_limit());
            assert_eq!(error.position(), Position::Line(2));
        }
    }

    #[test]
    fn an_interrupted_read_is_retried_and_a_failed_one_names_the_line() {
        struct Faulty(Vec<io::Result<&'static [u8]>>);
        impl Read for Faulty {
            fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
                let bytes = self.0.remove(0)?;
                to[..bytes.len()].copy_from_slice(bytes);
                Ok(bytes.len())
            }
        }
        let script =
            vec![Err(io::ErrorKind::Interrupted.into()), Ok(&b"a\n"[..]), Err(io::Error::other("gone"))];
        let mut lines = Lines::new(BufReader::new(Faulty(script)), "text", &Limits::default());
        assert_eq!(lines.next_line().unwrap(), Some(&b"a"[..]));
        let error = lines.next_line().unwrap_err();
        assert!(error.is_io());
        assert_eq!(error.to_string(), "gone (text, at line 2)");
    }

    #[test]
    fn an_excerpt_is_short_and_printable() {
        assert_eq!(excerpt(b"0 f\t\0\xff"), "0 f\u{fffd}\u{fffd}\u{fffd}");
        assert_eq!(excerpt(&[b'x'; 1000]).chars().count(), 81);
    }
}
