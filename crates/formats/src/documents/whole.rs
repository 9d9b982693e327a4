//! Documents that are held in memory whole, because a sample may refer to any part of them.

use std::io::{BufRead, Read};

use borehole_memory::HeldBytes as _;
use borehole_model::{ProfileSink, Recovery, Warning};

use crate::{Error, Limits, Position, ReadError, ReadOptions};

/// Decides whether damage ends the reading.
#[derive(Debug, Default)]
pub(crate) struct DocumentDamage {
    lenient: bool,
    pub(crate) limits: Limits,
    /// The line of the document within a text, where byte offsets differ from those of the input.
    pub(crate) line: Option<u64>,
    pub(crate) recovery: Recovery,
}

impl DocumentDamage {
    pub(crate) fn new(options: &ReadOptions) -> Self {
        let limits = options.limits;
        Self { lenient: options.is_lenient(), limits, line: None, recovery: Recovery::default() }
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
        let mut warning = Warning::of(&error);
        if let Position::Line(line) = error.position() {
            warning.message = format!("{} (line {line})", error.message());
        }
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

/// The error of bytes that end before a value does.
#[cold]
pub(crate) fn cut_off(format: &'static str, error: borehole_wire::Error) -> Error {
    let message = match error.kind() {
        borehole_wire::ErrorKind::Truncated { missing } => format!("truncated: {missing} bytes missing"),
        _ => "invalid number".to_owned(),
    };
    Error::truncated(format, Position::Byte(error.offset()), message)
}

/// The number of bytes between checks of the memory of a document that is read whole.
const CHECKED_BYTES: u64 = 1 << 20;

/// Reads the whole input, as long as it is within the limits.
///
/// # Errors
/// If it cannot be read, is larger or is empty.
pub(crate) fn read_whole(
    format: &'static str,
    input: impl BufRead,
    limits: &Limits,
) -> Result<Vec<u8>, Error> {
    let bytes = read_up_to(format, input, u64::MAX, limits)?;
    if bytes.is_empty() {
        let message = "expected a profile, found an empty input";
        return Err(Error::truncated(format, Position::Byte(0), message));
    }
    Ok(bytes)
}

/// Reads `most` bytes, or fewer at the end of the input, as long as they are within the limits.
///
/// # Errors
/// If the input cannot be read, or the bytes take more memory than allowed.
pub(crate) fn read_up_to(
    format: &'static str,
    mut input: impl Read,
    most: u64,
    limits: &Limits,
) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    loop {
        let wanted = CHECKED_BYTES.min(most - bytes.len() as u64);
        let read = input.by_ref().take(wanted).read_to_end(&mut bytes);
        let position = Position::Byte(bytes.len() as u64);
        let read = read.map_err(|error| Error::io(format, position, error))?;
        limits.check(bytes.held_bytes()).map_err(|over| Error::memory(format, position, over))?;
        if (read as u64) < CHECKED_BYTES {
            return Ok(bytes);
        }
    }
}
