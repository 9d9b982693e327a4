//! The one error of all formats.
//!
//! It is opaque and one word long: readers return `Result<_, Error>` for every record, and what a caller
//! does with an error is to show it, to ask what sort it is, or to ask where it happened.

use std::{error, fmt, io};

use borehole_model::TableFull;
use borehole_model::shown::cause;

/// What is wrong with an input, and where.
///
/// Its text reads "expected X, found Y (format, at byte 0x1a40)".
pub struct Error(Box<Inner>);

struct Inner {
    kind: ErrorKind,
    format: &'static str,
    position: Position,
    message: String,
    source: Option<io::Error>,
}

/// The sort of an [`Error`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The input ends in the middle of something.
    Truncated,
    /// The input contradicts its format.
    Malformed,
    /// The input uses a version or a feature that is not supported.
    Unsupported,
    /// The input needs more than one of the [`Limits`](crate::Limits) allows.
    Limit,
    /// The input could not be read at all.
    Io,
}

/// Where in an input something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Position {
    /// A byte offset, 0-based, after decompression.
    Byte(u64),
    /// A line, 1-based.
    Line(u64),
    /// The input as a whole.
    Whole,
}

impl Error {
    /// An error of `kind` in an input of `format`; `message` says what was expected and what was found.
    #[cold]
    #[must_use]
    pub fn new(
        kind: ErrorKind,
        format: &'static str,
        position: Position,
        message: impl Into<String>,
    ) -> Self {
        Self(Box::new(Inner { kind, format, position, message: message.into(), source: None }))
    }

    /// A malformed input.
    #[cold]
    #[must_use]
    pub fn malformed(format: &'static str, position: Position, message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Malformed, format, position, message)
    }

    /// An input that ends too early.
    #[cold]
    #[must_use]
    pub fn truncated(format: &'static str, position: Position, message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Truncated, format, position, message)
    }

    /// A failure of the operating system while reading the input.
    #[cold]
    #[must_use]
    pub fn io(format: &'static str, position: Position, source: io::Error) -> Self {
        let message = cause(&source);
        Self(Box::new(Inner { kind: ErrorKind::Io, format, position, message, source: Some(source) }))
    }

    /// The number of the operating system's error; `None` where it was not the system that failed: what an input is packed in may
    /// be damaged.
    #[must_use]
    pub fn raw_os_error(&self) -> Option<i32> {
        self.0.source.as_ref()?.raw_os_error()
    }

    /// The sort of error.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The format.
    #[must_use]
    pub fn format(&self) -> &'static str {
        self.0.format
    }

    /// The byte offset, for formats that are not text.
    #[must_use]
    pub fn offset(&self) -> Option<u64> {
        match self.0.position {
            Position::Byte(offset) => Some(offset),
            Position::Line(_) | Position::Whole => None,
        }
    }

    /// Where.
    #[must_use]
    pub fn position(&self) -> Position {
        self.0.position
    }

    /// What was expected and what was found, without format and position.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Whether the input ends too early.
    #[must_use]
    pub fn is_truncated(&self) -> bool {
        self.kind() == ErrorKind::Truncated
    }

    /// Whether the input contradicts its format.
    #[must_use]
    pub fn is_malformed(&self) -> bool {
        self.kind() == ErrorKind::Malformed
    }

    /// Whether the input uses what is not supported.
    #[must_use]
    pub fn is_unsupported(&self) -> bool {
        self.kind() == ErrorKind::Unsupported
    }

    /// Whether a limit was met.
    #[must_use]
    pub fn is_limit(&self) -> bool {
        self.kind() == ErrorKind::Limit
    }

    /// Whether the input could not be read at all.
    #[must_use]
    pub fn is_io(&self) -> bool {
        self.kind() == ErrorKind::Io
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { format, message, .. } = &*self.0;
        match self.0.position {
            Position::Byte(offset) => write!(f, "{message} ({format}, at byte {offset:#x})"),
            Position::Line(line) => write!(f, "{message} ({format}, at line {line})"),
            Position::Whole => write!(f, "{message} ({format})"),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {self}", self.kind())
    }
}

impl error::Error for Error {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        // What a failure of the system says is the message already.
        self.0.source.as_ref().and_then(error::Error::source)
    }
}

/// Why an import ended early: the input is bad, or the sink could not take more.
#[derive(Debug)]
pub enum ReadError {
    /// The input.
    Input(Error),
    /// The sink: a full disk, a closed pipe, a full table.
    Sink(io::Error),
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Input(error) => error.fmt(f),
            Self::Sink(error) => error.fmt(f),
        }
    }
}

impl error::Error for ReadError {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            Self::Input(error) => error.source(),
            Self::Sink(error) => error.source(),
        }
    }
}

impl From<Error> for ReadError {
    fn from(error: Error) -> Self {
        Self::Input(error)
    }
}

impl From<io::Error> for ReadError {
    fn from(error: io::Error) -> Self {
        Self::Sink(error)
    }
}

impl From<TableFull> for ReadError {
    fn from(full: TableFull) -> Self {
        Self::Sink(full.into())
    }
}
