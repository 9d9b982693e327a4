//! The error type of all formats.
//!
//! It is opaque and one word long, because readers return `Result<_, Error>` for every record. Callers show an error,
//! ask for its kind or ask for its position.

use std::{error, fmt, io};

/// An error in an input, with its position.
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

/// The kind of an [`Error`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The input ends in the middle of a record.
    Truncated,
    /// The input contradicts its format.
    Malformed,
    /// The input uses an unsupported version or feature.
    Unsupported,
    /// The input exceeds one of the limits of reading.
    Limit,
    /// Reading the input takes more memory than allowed.
    Memory,
    /// The input could not be read.
    Io,
    /// The output could not be written, or a sink failed.
    Output,
    /// The work was cancelled.
    Cancelled,
}

/// A position in an input.
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
    /// Creates an error of `kind` in an input of `format`; `message` says what was expected and what was found.
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

    /// Creates an error for a malformed input.
    #[cold]
    #[must_use]
    pub fn malformed(format: &'static str, position: Position, message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Malformed, format, position, message)
    }

    /// Creates an error for an input that ends too early.
    #[cold]
    #[must_use]
    pub fn truncated(format: &'static str, position: Position, message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Truncated, format, position, message)
    }

    /// Creates an error for an input that takes more memory than allowed; `message` says how much is allowed.
    #[cold]
    #[must_use]
    pub fn memory(format: &'static str, position: Position, message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Memory, format, position, message)
    }

    /// Creates an error for a failure of the operating system while reading the input.
    #[cold]
    #[must_use]
    pub fn io(format: &'static str, position: Position, source: io::Error) -> Self {
        let message = cause(&source);
        Self(Box::new(Inner { kind: ErrorKind::Io, format, position, message, source: Some(source) }))
    }

    /// The error at another position.
    #[must_use]
    pub fn at(mut self, position: Position) -> Self {
        self.0.position = position;
        self
    }

    /// The failure of the operating system or of the caller's reader, as it was returned.
    #[must_use]
    pub fn io_error(&self) -> Option<&io::Error> {
        self.0.source.as_ref()
    }

    /// The number of the operating system's error; `None` for other failures, such as damaged compressed data.
    #[must_use]
    pub fn raw_os_error(&self) -> Option<i32> {
        self.0.source.as_ref()?.raw_os_error()
    }

    /// The kind of error.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The format.
    #[must_use]
    pub fn format(&self) -> &'static str {
        self.0.format
    }

    /// The byte offset; `None` for text formats.
    #[must_use]
    pub fn offset(&self) -> Option<u64> {
        match self.0.position {
            Position::Byte(offset) => Some(offset),
            Position::Line(_) | Position::Whole => None,
        }
    }

    /// The position.
    #[must_use]
    pub fn position(&self) -> Position {
        self.0.position
    }

    /// The text "expected X, found Y", without format and position.
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

    /// Whether the input uses an unsupported version or feature.
    #[must_use]
    pub fn is_unsupported(&self) -> bool {
        self.kind() == ErrorKind::Unsupported
    }

    /// Whether the input exceeds a limit, that of memory included.
    #[must_use]
    pub fn is_limit(&self) -> bool {
        matches!(self.kind(), ErrorKind::Limit | ErrorKind::Memory)
    }

    /// Whether reading the input takes more memory than allowed.
    #[must_use]
    pub fn is_memory(&self) -> bool {
        self.kind() == ErrorKind::Memory
    }

    /// Whether the input could not be read.
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
    /// The failure of the operating system or of the caller's reader. Its text is a part of this error's text.
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        self.io_error().map(|error| error as _)
    }
}

/// The reason why an import ended early: the input is bad, or the sink failed.
#[derive(Debug)]
pub enum ReadError {
    /// An error in the input.
    Input(Error),
    /// A failure of the sink: a full disk, a closed pipe, a full table.
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
    /// The error itself. Its text is this error's text.
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            Self::Input(error) => Some(error),
            Self::Sink(error) => Some(error),
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

/// The text of an I/O error in the style of Borehole's messages: lower case, without the number of the operating
/// system.
#[must_use]
pub fn cause(error: &io::Error) -> String {
    let text = error.to_string();
    if error.raw_os_error().is_none() {
        return text;
    }
    match error.kind() {
        io::ErrorKind::IsADirectory => return "expected a file, found a directory".to_owned(),
        // For example, an input that is read from more than one position.
        io::ErrorKind::NotSeekable => return "expected a file, found a pipe".to_owned(),
        _ => {}
    }
    let text = text.split(" (os error").next().unwrap_or(&text);
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_lowercase().chain(letters).collect())
}
