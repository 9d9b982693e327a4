//! The warnings of all readers.

use crate::error::{Error, Position};

/// Something odd or lost in an input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// The position in the input, in bytes after decompression. Text formats give lines in the message instead.
    pub offset: Option<u64>,
    /// The expected and the actual content.
    pub message: String,
    /// The number of bytes that could not be used.
    pub lost_bytes: u64,
    /// The number of samples read between this damage and the next one, or the end. `None`: nothing is damaged here,
    /// reading did not continue after it, or the format's reader does not count them.
    pub saved_samples: Option<u64>,
}

impl Warning {
    /// A warning about the whole input, without loss.
    #[must_use]
    pub fn new(message: impl Into<String>) -> Self {
        Self { offset: None, message: message.into(), lost_bytes: 0, saved_samples: None }
    }

    /// Sets the position, if there is one.
    #[must_use]
    pub fn at(self, offset: impl Into<Option<u64>>) -> Self {
        Self { offset: offset.into(), ..self }
    }

    /// Sets the number of bytes that could not be used.
    #[must_use]
    pub fn losing(self, lost_bytes: u64) -> Self {
        Self { lost_bytes, ..self }
    }

    /// The error of a reader that stops here, in an input of `format`.
    #[must_use]
    pub fn to_error(&self, format: &'static str) -> Error {
        let position = self.offset.map_or(Position::Whole, Position::Byte);
        Error::malformed(format, position, self.message.as_str())
    }
}
