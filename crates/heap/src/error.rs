//! The errors of heap graphs and their files.

use std::{error, fmt, io};

/// An error with its position.
///
/// Its text reads "expected X, found Y (rmem, at byte 0x1a40)".
pub struct Error(Box<Inner>);

struct Inner {
    kind: ErrorKind,
    format: &'static str,
    offset: Option<u64>,
    message: String,
    source: Option<io::Error>,
}

/// The kind of an [`Error`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The input ends too early.
    Truncated,
    /// The input violates its format.
    Malformed,
    /// The input uses an unsupported version or feature.
    Unsupported,
    /// There are more items than fit in 32 bits.
    Limit,
    /// Reading or writing failed.
    Io,
}

impl Error {
    #[cold]
    pub(crate) fn new(kind: ErrorKind, format: &'static str, message: impl Into<String>) -> Self {
        Self(Box::new(Inner { kind, format, offset: None, message: message.into(), source: None }))
    }

    #[cold]
    pub(crate) fn malformed(format: &'static str, message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Malformed, format, message)
    }

    #[cold]
    pub(crate) fn io(format: &'static str, source: io::Error) -> Self {
        let message = source.to_string();
        Self(Box::new(Inner { kind: ErrorKind::Io, format, offset: None, message, source: Some(source) }))
    }

    /// Creates an error at byte `offset` of the input.
    #[cold]
    pub(crate) fn at(mut self, offset: u64) -> Self {
        self.0.offset = Some(offset);
        self
    }

    /// The kind of this error.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The position in the input in bytes, from 0; `None` if the error is about the whole input.
    #[must_use]
    pub fn offset(&self) -> Option<u64> {
        self.0.offset
    }

    /// Whether the input ends too early.
    #[must_use]
    pub fn is_truncated(&self) -> bool {
        self.0.kind == ErrorKind::Truncated
    }

    /// Whether the input violates its format.
    #[must_use]
    pub fn is_malformed(&self) -> bool {
        self.0.kind == ErrorKind::Malformed
    }

    /// The error of reading or writing, if there was one.
    #[must_use]
    pub fn as_io(&self) -> Option<&io::Error> {
        self.0.source.as_ref()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { format, offset, message, .. } = &*self.0;
        match offset {
            Some(offset) => write!(f, "{message} ({format}, at byte {offset:#x})"),
            None => write!(f, "{message} ({format})"),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl error::Error for Error {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        self.0.source.as_ref().map(|source| source as _)
    }
}
