//! Documents that are held in memory whole, because a sample may refer to any part of them.

use std::io::{BufRead, Read as _};

use borehole_model::{ProfileSink, Recovery, Warning};

use crate::ErrorKind;
use crate::{Error, Position, ReadError, ReadOptions};

/// Decides whether damage ends the reading.
#[derive(Debug, Default)]
pub(crate) struct DocumentDamage {
    lenient: bool,
    /// The line of the document within a text, where byte offsets differ from those of the input.
    pub(crate) line: Option<u64>,
    pub(crate) recovery: Recovery,
}

impl DocumentDamage {
    pub(crate) fn new(options: &ReadOptions) -> Self {
        Self { lenient: options.is_lenient(), line: None, recovery: Recovery::default() }
    }

    /// Notes an error that cost `lost_bytes`, if damage is skipped.
    ///
    /// # Errors
    /// The error itself, if damage is not skipped.
    pub(crate) fn meet(&mut self, error: Error, lost_bytes: u64) -> Result<(), Error> {
        let error = match (self.line, error.position()) {
            (Some(line), Position::Byte(_)) => {
                Error::new(error.kind(), error.format(), Position::Line(line), error.message())
            }
            _ => error,
        };
        if !self.lenient || error.is_limit() || error.is_io() {
            return Err(error);
        }
        let warning = match error.position() {
            Position::Line(line) => Warning::new(format!("{} (line {line})", error.message())),
            _ => Warning::new(error.message().to_owned()).at(error.offset()),
        };
        self.recovery.warn(warning.losing(lost_bytes));
        Ok(())
    }

    /// Reports the warnings to `sink`.
    ///
    /// # Errors
    /// If the sink fails.
    pub(crate) fn finish(self, sink: &mut dyn ProfileSink) -> Result<Recovery, ReadError> {
        for warning in &self.recovery.warnings {
            sink.warning(warning)?;
        }
        Ok(self.recovery)
    }
}

/// Reads the whole input, up to the limit.
///
/// # Errors
/// If it cannot be read, is larger or is empty.
pub(crate) fn read_whole(format: &'static str, input: impl BufRead, limit: usize) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    let read = input.take((limit as u64).saturating_add(1)).read_to_end(&mut bytes);
    read.map_err(|error| Error::io(format, Position::Byte(bytes.len() as u64), error))?;
    if bytes.len() > limit {
        return Err(too_large(format, Position::Byte(limit as u64), limit));
    }
    if bytes.is_empty() {
        let message = "expected a profile, found an empty input";
        return Err(Error::truncated(format, Position::Byte(0), message));
    }
    Ok(bytes)
}

/// The error of a document of more than `limit` bytes.
pub(crate) fn too_large(format: &'static str, position: Position, limit: usize) -> Error {
    let message = format!("document too large: expected at most {limit} bytes");
    Error::new(ErrorKind::Limit, format, position, message)
}
