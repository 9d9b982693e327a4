//! Documents that are in memory as a whole, for what a sample refers to may stand anywhere in them.

use std::io::{BufRead, Read as _};

use borehole_model::{Recovery, Warning};

use crate::{Error, ErrorKind, Position, ReadOptions};

/// The whole input, up to the limit.
///
/// # Errors
/// When it cannot be read, is larger, or empty.
pub(crate) fn read_whole(format: &'static str, input: impl BufRead, limit: usize) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    let read = input.take((limit as u64).saturating_add(1)).read_to_end(&mut bytes);
    read.map_err(|error| Error::io(format, Position::Byte(bytes.len() as u64), error))?;
    if bytes.len() > limit {
        let message = format!("document too large: expected at most {limit} bytes");
        return Err(Error::new(ErrorKind::Limit, format, Position::Byte(limit as u64), message));
    }
    if bytes.is_empty() {
        let message = "expected a profile, found an empty input";
        return Err(Error::truncated(format, Position::Byte(0), message));
    }
    Ok(bytes)
}

/// Decides whether damage ends the reading.
#[derive(Debug)]
pub(crate) struct Damage {
    lenient: bool,
    pub(crate) recovery: Recovery,
}

impl Damage {
    pub(crate) fn new(options: &ReadOptions) -> Self {
        Self { lenient: options.is_lenient(), recovery: Recovery::default() }
    }

    /// Notes an error that cost `lost_bytes`, where damage is read over.
    ///
    /// # Errors
    /// The error itself, where it is not.
    pub(crate) fn meet(&mut self, error: Error, lost_bytes: u64) -> Result<(), Error> {
        if !self.lenient || error.is_limit() {
            return Err(error);
        }
        let message = error.message().to_owned();
        self.recovery.warn(Warning::new(message).at(error.offset()).losing(lost_bytes));
        Ok(())
    }
}
