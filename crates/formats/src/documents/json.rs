//! JSON documents, read as a stream up to a limit.

use std::io::{self, BufRead, Read};

use serde::de::DeserializeSeed;

use super::whole::too_large;
use crate::{Error, ErrorKind, Position};

/// An input that fails at the limit.
struct Limited<R> {
    input: R,
    left: usize,
    is_met: bool,
    /// The number of ended lines.
    lines: u64,
}

impl<R: BufRead> Read for Limited<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(buffer)?;
        self.lines += buffer[..read].iter().filter(|&&byte| byte == b'\n').count() as u64;
        match self.left.checked_sub(read) {
            Some(left) => self.left = left,
            None => {
                self.is_met = true;
                return Err(io::Error::other("document too large"));
            }
        }
        Ok(read)
    }
}

/// Reads a document of at most `limit` bytes with nothing after it.
///
/// # Errors
/// If it is longer, cut off, or rejected by `seed`.
pub(crate) fn parse<'de, S: DeserializeSeed<'de>>(
    format: &'static str,
    input: impl BufRead,
    limit: usize,
    seed: S,
) -> Result<S::Value, Error> {
    let mut limited = Limited { input, left: limit, is_met: false, lines: 0 };
    let mut deserializer = serde_json::Deserializer::from_reader(&mut limited);
    let read = seed.deserialize(&mut deserializer).and_then(|read| deserializer.end().map(|()| read));
    let is_met = limited.is_met;
    read.map_err(|error| json_error(format, error, 0, is_met.then_some(limit)))
}

/// Reads one object of at most `limit` bytes, which others may follow. `lines` is the number of lines that have ended
/// before; after an error, it is unspecified how much of the object has been read.
///
/// # Errors
/// If it is longer, cut off, or rejected by `seed`.
pub(crate) fn parse_next<'de, S: DeserializeSeed<'de>>(
    format: &'static str,
    input: impl BufRead,
    limit: usize,
    lines: &mut u64,
    seed: S,
) -> Result<S::Value, Error> {
    let mut limited = Limited { input, left: limit, is_met: false, lines: 0 };
    let read = seed.deserialize(&mut serde_json::Deserializer::from_reader(&mut limited));
    let (before, is_met) = (*lines, limited.is_met);
    *lines += limited.lines;
    read.map_err(|error| json_error(format, error, before, is_met.then_some(limit)))
}

fn json_error(format: &'static str, error: serde_json::Error, lines: u64, limit: Option<usize>) -> Error {
    let position = Position::Line(lines + error.line() as u64);
    if let Some(limit) = limit {
        return too_large(format, position, limit);
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
